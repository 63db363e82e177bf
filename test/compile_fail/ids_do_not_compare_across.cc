// expect: no match for .operator==.|invalid operands|ambiguous|no type named
#include "core/ids.h"

using namespace plumbline;

#ifdef MISUSE
bool same(TensorId a, NodeId b) { return a == b; }
#else
bool same(TensorId a, TensorId b) { return a == b; }
#endif
