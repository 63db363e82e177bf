// expect: could not convert|no viable conversion|conversion from
#include "core/quantity.h"

using namespace plumbline;

#ifdef MISUSE
Nanoseconds wait() { return Seconds(0.002); }
#else
Nanoseconds wait() { return Nanoseconds(2000000); }
#endif
