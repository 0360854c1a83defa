#pragma once

#include <sys/types.h>

namespace troupe::apps {

/// The environment variable that has the id of the process which keeps this one.
inline constexpr const char* keeper_variable = "TROUPE_KEPT_BY";

/// Returns the process that started this one and keeps it (apps/real/real_processes.h); 0 if none
/// does.
pid_t keeper_of_this_process();
/// Returns the signal by which a keeper asks its process to end. The signal is queued, while two
/// pending SIGTERMs would merge into one.
int signal_of_keeper();

}  // namespace troupe::apps
