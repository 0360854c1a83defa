#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

/// The end of the process of a node.
struct Crash {
  std::chrono::nanoseconds when{};   // On any clock.
  std::optional<std::int64_t> step;  // 0-based; if it was at one that no attempt had done yet.
  std::string node;
  int signal = 0;   // That ended it; 0: it ended by itself.
  std::string how;  // "was ended by signal 11 (Segmentation fault)"
};

/// How many processes of a node may end in how much time, before the run does without it.
struct CrashRules {
  int allowed = 3;
  std::chrono::nanoseconds window = std::chrono::minutes(10);
};

/// Tells nodes and steps that end their processes from losses that come by chance. A signal that
/// comes from outside says nothing against a step: the reconciler counts attempts that come to
/// nothing.
class Crashes {
 public:
  enum class What : std::uint8_t {
    go_on,
    without_node,  // Go on without the node of the last crash if the others suffice.
    give_up,
  };
  struct Verdict {
    What what = What::go_on;
    bool is_fault = false;  // The program itself did wrong, twice in the same way.
    std::string reason;
  };

  Verdict judge(const Crash& crash, const CrashRules& rules);

 private:
  Verdict judge_step(const Crash& crash);
  Verdict judge_node(const Crash& crash, const CrashRules& rules);

  std::vector<Crash> at_step_;  // All at the same one, which was never done.
  std::deque<Crash> recent_;    // Within the window, oldest first.
};

/// Whether a signal is raised by what the program itself does.
bool is_fault(int signal);

}  // namespace troupe::actors
