#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

/// The end of a process in the middle of a step that no attempt has done yet.
struct Crash {
  std::int64_t step = 0;  // 0-based.
  std::string node;
  int signal = 0;   // That ended it; 0: it ended by itself.
  std::string how;  // "was ended by signal 11 (Segmentation fault)"
};

/// Tells a step that ends its process each time from losses that come by chance. All deaths at the
/// furthest step of a run count until that step is done.
class Crashes {
 public:
  enum class What : std::uint8_t {
    go_on,
    without_node,  // All were on this node: go on without it if the others suffice.
    give_up,
  };
  struct Verdict {
    What what = What::go_on;
    bool is_fault = false;  // The program itself did wrong, twice in the same way.
    std::string reason;
  };

  /// `allowed`: deaths by any cause at one step (limits.strikes).
  Verdict judge(Crash crash, int allowed);
  /// Whether so many have come at the step of the last one.
  bool are_more_than(int allowed) const { return static_cast<int>(at_step_.size()) > allowed; }

 private:
  std::vector<Crash> at_step_;  // All at the same one.
};

/// Whether a signal is raised by what the program itself does.
bool is_fault(int signal);

}  // namespace troupe::actors
