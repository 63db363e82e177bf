// expect: cannot convert|no viable conversion
#include "core/quantity.h"

using namespace plumbline;

#ifdef MISUSE
std::int64_t count(Bytes b) { return b; }
#else
std::int64_t count(Bytes b) { return b.raw(); }
#endif
