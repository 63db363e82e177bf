// expect: could not convert|no viable conversion|conversion from
#include "core/quantity.h"

using namespace plumbline;

#ifdef MISUSE
Joules energy(Watts p) { return p; }
#else
Joules energy(Femtojoules e) { return e.joules(); }
#endif
