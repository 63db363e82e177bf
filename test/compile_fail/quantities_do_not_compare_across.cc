// expect: no match for .operator<.|invalid operands
#include "core/quantity.h"

using namespace plumbline;

#ifdef MISUSE
bool fits(Bytes need, Macs have) { return need < have; }
#else
bool fits(Bytes need, Bytes have) { return need < have; }
#endif
