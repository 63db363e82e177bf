// expect: cannot convert|no viable conversion
#include "core/ids.h"

using namespace plumbline;

#ifdef MISUSE
std::size_t place(NodeId id) { return id; }
#else
std::size_t place(NodeId id) { return id.at(); }
#endif
