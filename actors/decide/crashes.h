#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "actors/decide/failures.h"

namespace troupe::actors {

/// The end of a node's process.
struct Crash {
  std::chrono::nanoseconds when{};   // Any clock may be used.
  std::optional<std::int64_t> step;  // Counted from 0; empty unless no attempt had done that step.
  std::string node;
  int signal = 0;   // The signal that ended it; 0: it exited.
  std::string how;  // "was ended by signal 11 (Segmentation fault)"
};

/// Tells nodes and steps that end processes from random losses. A signal from outside is no
/// evidence against a step; the run's machine counts attempts without progress.
class Crashes {
 public:
  enum class What : std::uint8_t {
    go_on,
    without_node,  // Continue without the last crash's node if the others suffice.
    give_up,
  };
  struct Verdict {
    What what = What::go_on;
    bool is_fault = false;  // The program itself failed twice in the same way.
    std::string reason;
  };

  /// `limits`: how many processes of a node may end before the run avoids the node.
  Verdict judge(const Crash& crash, const FailureLimits& limits);

 private:
  Verdict judge_step(const Crash& crash);
  Verdict judge_node(const Crash& crash, const FailureLimits& limits);

  std::vector<Crash> at_step_;  // All at one step, which was never done.
  std::deque<Crash> recent_;    // Within the window, oldest first.
};

/// Returns whether the program's own errors raise this signal.
bool is_fault(int signal);

}  // namespace troupe::actors
