#pragma once

#include <sys/types.h>

#include <map>
#include <string>

namespace troupe::bench {

/// Seconds that the threads of a process have computed so far, together by their names. Of those
/// that have ended nothing is known.
std::map<std::string, double> thread_times(pid_t process);

}  // namespace troupe::bench
