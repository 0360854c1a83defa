#pragma once

#include <pthread.h>

namespace troupe {

/// Names the calling thread for `top -H`, debuggers and profilers, in at most 15 characters.
inline void name_thread(const char* name) { (void)pthread_setname_np(pthread_self(), name); }

}  // namespace troupe
