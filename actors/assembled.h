#pragma once

#include <caf/all.hpp>
#include <chrono>
#include <cstdint>
#include <string>

namespace troupe::actors {

/// Tells the supervisor that the players can play, starting after this step, and how long it took
/// to wait for nodes, to prepare them, and to connect them and load their state.
struct Assembled {
  int attempt = 0;
  std::int64_t step = 0;
  bool from_memory = false;  // The state comes from nodes' memory, not from a checkpoint.
  int nodes_here = 0;
  int copies = 0;  // Copies to keep of each step, summed over all states.
  std::chrono::nanoseconds nodes{};
  std::chrono::nanoseconds prepare{};
  std::chrono::nanoseconds load{};
};

/// Tells the supervisor something that the user should know.
struct Remark {
  std::string text;
};

}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Assembled)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Remark)
