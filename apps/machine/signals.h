#pragma once

#include "core/threads/event_fd.h"

namespace troupe::apps {

/// From now on the first SIGINT or SIGTERM rings the bell. One that comes a second later or after
/// ends the process at once. A kept process (kept_process.h) obeys signal_of_keeper() in place of
/// both, and only from the process that keeps it: that one decides when its child ends. The bell
/// outlives the process' last signal.
void ring_on_signals(EventFd& bell);
/// Whether one has come.
bool signal_came();

}  // namespace troupe::apps
