// expect: could not convert|no viable conversion|conversion from
#include "core/quantity.h"

using namespace plumbline;

#ifdef MISUSE
Bytes stored(Bits b) { return b; }
#else
Bytes stored(Bits b) { return ceil_bytes(b); }
#endif
