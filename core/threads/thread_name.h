#pragma once

#include <pthread.h>

namespace troupe {

/// What `top -H`, debuggers and profiles call the thread that calls this: up to 15 characters.
inline void name_thread(const char* name) { (void)pthread_setname_np(pthread_self(), name); }

}  // namespace troupe
