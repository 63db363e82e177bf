// expect: ignoring return(ed)? value
#include "core/result.h"

using namespace plumbline;

#ifdef MISUSE
Status write();
void call() { write(); }
#else
Status write();
bool call() { return write().ok(); }
#endif
