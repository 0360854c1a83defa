#include "actors/decide/crashes.h"

#include <signal.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

bool is_fault(int signal) {
  constexpr int faults[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS};
  return std::ranges::find(faults, signal) != std::end(faults);
}

Crashes::Verdict Crashes::judge(const Crash& crash, const FailureLimits& limits) {
  auto of_step = judge_step(crash);
  auto of_node = judge_node(crash, limits);
  return of_step.what == What::go_on ? of_node : of_step;
}

Crashes::Verdict Crashes::judge_step(const Crash& crash) {
  if (!crash.step) return {};
  if (!at_step_.empty() && at_step_.front().step != crash.step) at_step_.clear();
  const bool came_before =
      std::ranges::count(at_step_, crash.signal, &Crash::signal) > 0 && is_fault(crash.signal);
  at_step_.push_back(crash);
  if (at_step_.size() < 2) return {};
  const bool on_one_node =
      std::ranges::all_of(at_step_, [&](const Crash& other) { return other.node == crash.node; });
  Verdict verdict;
  verdict.is_fault = came_before;
  verdict.reason =
      "step " + std::to_string(*crash.step + 1) + " has ended " + std::to_string(at_step_.size()) +
      " processes, and has not been done; the last one, on node " + crash.node + ", " + crash.how;
  if (on_one_node)
    verdict.what = What::without_node;
  else if (came_before)
    verdict.what = What::give_up;
  return verdict;
}

/// Blames a node if more than twice as many processes end on it as on all other nodes together.
Crashes::Verdict Crashes::judge_node(const Crash& crash, const FailureLimits& limits) {
  recent_.push_back(crash);
  while (crash.when - recent_.front().when > limits.window) recent_.pop_front();
  const auto here = std::ranges::count(recent_, crash.node, &Crash::node);
  const auto elsewhere = std::ssize(recent_) - here;
  if (here <= limits.allowed || here <= 2 * elsewhere) return {};
  // Count from zero when the node is used again.
  std::erase_if(recent_, [&](const Crash& other) { return other.node == crash.node; });
  return {What::without_node, false,
          std::to_string(here) + " processes have ended on node " + crash.node + ", and " +
              std::to_string(elsewhere) + " on all others (limits.strikes = " +
              std::to_string(limits.allowed) + "); the last one " + crash.how};
}

}  // namespace troupe::actors
