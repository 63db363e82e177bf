// expect: no match for .operator[+].|invalid operands
#include "core/quantity.h"

using namespace plumbline;

#ifdef MISUSE
Bytes total(Bytes a, Bits b) { return a + b; }
#else
Bytes total(Bytes a, Bits b) { return a + ceil_bytes(b); }
#endif
