#pragma once

#include <string>

#include "core/result.h"

namespace troupe::bench {

/// What it takes to get tensors from one process of this machine to another: half a round trip by
/// every carrier, beside a copy in memory, plain sockets, and other libraries where they are
/// installed. Rounds are interleaved, so that what disturbs one disturbs the others, and medians
/// are shown, as a table for people. To be called while this process has one thread.
Result<std::string> measure_transport(int rounds);

}  // namespace troupe::bench
