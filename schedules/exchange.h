#pragma once

#include <cstdint>

namespace troupe::schedules {

/// Where the gradients of those who hold a stage come together: each of them has a section of the
/// stage and the optimizer's state of that alone, or the first one has all.
enum class Exchange : std::uint8_t { all_to_all, server };

}  // namespace troupe::schedules
