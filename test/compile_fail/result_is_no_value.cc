// expect: could not convert|cannot convert|no viable conversion
#include "core/result.h"

using namespace plumbline;

#ifdef MISUSE
Result<int> read();
int value() { return read(); }
#else
Result<int> read();
int value() { return read().value(); }
#endif
