#pragma once

#include <string>

#include "core/result.h"

namespace troupe::bench {

/// Measures half a round trip of tensors between two processes of this machine for every carrier,
/// and compares it with a memory copy, plain sockets, and other libraries if installed. Rounds are
/// interleaved, so that a disturbance affects all alike. Returns a table of medians. Call it while
/// this process has a single thread.
Result<std::string> measure_transport(int rounds);

}  // namespace troupe::bench
