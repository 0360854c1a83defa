#pragma once

#include <sys/types.h>

#include <map>
#include <string>

namespace troupe::bench {

/// Returns the CPU seconds of a process's threads, summed by thread name. Threads that have ended
/// do not count.
std::map<std::string, double> thread_times(pid_t process);

}  // namespace troupe::bench
