#pragma once

#include <cstdint>

namespace troupe::schedules {

/// How the replicas of a stage reduce gradients. `all_to_all`: each replica owns a section of the
/// stage and its optimizer state. `server`: the first replica owns the whole stage.
enum class Exchange : std::uint8_t { all_to_all, server };

}  // namespace troupe::schedules
