#pragma once

#include <caf/all.hpp>
#include <chrono>
#include <cstdint>
#include <string>

namespace troupe::actors {

/// Who brings players together, to the supervisor: they can play, from this step on. How long it
/// waited for nodes, for them to prepare, and for them to connect and be given their state.
struct Assembled {
  int attempt = 0;
  std::int64_t step = 0;
  bool from_memory = false;  // Of nodes; else as it was loaded.
  int nodes_here = 0;
  int copies = 0;  // That are to be kept of a step, of all states together.
  std::chrono::nanoseconds nodes{};
  std::chrono::nanoseconds prepare{};
  std::chrono::nanoseconds load{};
};

/// Likewise: something that a person should know.
struct Remark {
  int attempt = 0;
  std::string text;
};

/// Likewise: a node's process has ended.
struct ProcessEnded {
  int attempt = 0;  // In which it had a part; 0: not in the newest one.
  std::string node;
  int signal = 0;  // That ended it.
  std::string how;
};

/// Likewise: no attempt of the run will ever begin.
struct GivenUp {
  int attempt = 0;
  std::string why;
};

}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Assembled)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Remark)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::ProcessEnded)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::GivenUp)
