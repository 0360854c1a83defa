#pragma once

#include "apps/bell.h"

namespace troupe::apps {

/// From now on the first SIGINT or SIGTERM rings the bell, and the second ends the process at once.
/// The bell outlives the process' last signal.
void ring_on_signals(Bell& bell);
/// Whether one has come.
bool signal_came();

}  // namespace troupe::apps
