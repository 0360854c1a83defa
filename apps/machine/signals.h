#pragma once

#include "core/threads/event_fd.h"

namespace troupe::apps {

/// Makes the first SIGINT or SIGTERM ring the bell. A signal that comes a second later or after
/// ends the process at once. A kept process (keeper.h) obeys signal_of_keeper() instead, and
/// only from its keeper, which decides when its child ends. The bell must outlive the last signal.
void ring_on_signals(EventFd& bell);
/// Returns whether a signal has come.
bool signal_came();

}  // namespace troupe::apps
