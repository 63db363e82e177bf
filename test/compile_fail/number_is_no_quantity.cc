// expect: could not convert|no viable conversion|conversion from
#include "core/quantity.h"

using namespace plumbline;

#ifdef MISUSE
Bytes capacity() { return 4096; }
#else
Bytes capacity() { return Bytes(4096); }
#endif
