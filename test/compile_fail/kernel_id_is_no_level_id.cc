// expect: could not convert|no viable conversion|conversion from
#include "core/ids.h"

using namespace plumbline;

#ifdef MISUSE
LevelId same(KernelId id) { return id; }
#else
LevelId same(LevelId id) { return id; }
#endif
