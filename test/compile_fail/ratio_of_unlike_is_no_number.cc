// expect: cannot convert|no viable conversion
#include "core/quantity.h"

using namespace plumbline;

#ifdef MISUSE
double ratio(Macs a, Bytes b) { return a / b; }
#else
double ratio(Bytes a, Bytes b) { return a / b; }
#endif
