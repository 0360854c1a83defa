#pragma once

#include <caf/all.hpp>
#include <chrono>

namespace troupe::actors {

/// Who brings players together on nodes, to the supervisor: they can play. How long it waited for
/// nodes, for them to prepare, and for them to connect and be given their state.
struct Assembled {
  int attempt = 0;
  std::chrono::nanoseconds nodes{};
  std::chrono::nanoseconds prepare{};
  std::chrono::nanoseconds load{};
};

}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Assembled)
