#include "actors/crashes.h"

#include <signal.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

bool is_fault(int signal) {
  constexpr int faults[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS};
  return std::ranges::find(faults, signal) != std::end(faults);
}

Crashes::Verdict Crashes::judge(Crash crash, int allowed) {
  if (!at_step_.empty() && at_step_.front().step != crash.step) at_step_.clear();
  const bool came_before =
      std::ranges::count(at_step_, crash.signal, &Crash::signal) > 0 && is_fault(crash.signal);
  at_step_.push_back(crash);
  const auto count = static_cast<int>(at_step_.size());
  if (count < 2) return {};
  const bool on_one_node =
      std::ranges::all_of(at_step_, [&](const Crash& other) { return other.node == crash.node; });
  Verdict verdict;
  verdict.is_fault = came_before;
  verdict.reason =
      "step " + std::to_string(crash.step + 1) + " has ended " + std::to_string(count) +
      " processes, and has not been done; the last one, on node " + crash.node + ", " + crash.how;
  if (on_one_node)
    verdict.what = What::without_node;
  else if (came_before || count > allowed)
    verdict.what = What::give_up;
  return verdict;
}

}  // namespace troupe::actors
