// expect: could not convert|no viable conversion|conversion from
#include "core/quantity.h"

using namespace plumbline;

#ifdef MISUSE
Seconds duration(Cycles c, Clock) { return c; }
#else
Seconds duration(Cycles c, Clock clock) { return clock.duration(c); }
#endif
