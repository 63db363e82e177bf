// expect: no match for .operator[*].|invalid operands
#include "core/quantity.h"

using namespace plumbline;

#ifdef MISUSE
Bytes square(Bytes b) { return b * b; }
#else
Bytes twice(Bytes b) { return b * 2; }
#endif
