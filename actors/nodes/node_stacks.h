#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/threads/thread_stacks.h"
#include "core/value.h"
#include "transport/wire/fields.h"

/// The places of a node's threads in the program, for a person who looks for one that is stuck.
namespace troupe::actors {

/// Head to node: tell where your threads are.
struct TellStacks {
  static constexpr std::string_view type = "tell_stacks";

  std::int64_t question = 0;  // The answer repeats it.
  std::int64_t bytes = 0;     // The most that the answer may take.

  static constexpr auto fields() {
    return std::tuple(transport::required("question", &TellStacks::question),
                      transport::required("bytes", &TellStacks::bytes).at_least(0));
  }
};

/// A ThreadStack, as messages carry it.
struct ThreadPlace {
  std::string name;
  int thread = 0;
  std::string state;
  // Separated by "; ", since a list of many texts takes much memory to read.
  std::string frames;
  std::string why_none;  // Why there are no frames.

  static constexpr auto fields() {
    return std::tuple(transport::required("name", &ThreadPlace::name),
                      transport::required("thread", &ThreadPlace::thread),
                      transport::required("state", &ThreadPlace::state),
                      transport::required("frames", &ThreadPlace::frames),
                      transport::optional("why_none", &ThreadPlace::why_none));
  }
};

/// Node to head: where its threads are.
struct NodeStacks {
  static constexpr std::string_view type = "node.stacks";

  std::int64_t question = 0;
  std::vector<ThreadPlace> threads;
  int left_out = 0;  // Threads for which there was no room.

  static constexpr auto fields() {
    return std::tuple(transport::required("question", &NodeStacks::question),
                      transport::required("threads", &NodeStacks::threads),
                      transport::optional("left_out", &NodeStacks::left_out).at_least(0));
  }
};

/// Returns the answer to a question. Threads of devices come first, and others as they fit.
NodeStacks answer_with(std::vector<ThreadStack> stacks, const TellStacks& question);

/// Returns the threads as programs and people get them: `name`, `thread`, `state`, `frames`, a
/// list, and `why_none`, if there are none.
Value::List to_list(const std::vector<ThreadPlace>& threads);

}  // namespace troupe::actors
