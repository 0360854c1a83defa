#include "actors/decide/failures.h"

#include <algorithm>
#include <cassert>

namespace troupe::actors {

Verdict judge(const std::vector<Failure>& failures, const FailureLimits& limits) {
  assert(!failures.empty());
  const Failure& last = failures.back();
  const bool known = std::any_of(failures.begin(), failures.end() - 1, [&](const Failure& before) {
    const bool elsewhere = last.node.empty() || before.node != last.node;
    return elsewhere && before.why == last.why;
  });
  using What = Verdict::What;
  if (known) return {What::fails_again, "the same failure occurred twice at the same place"};
  if (!last.node.empty())
    return {What::try_again,
            "node " + last.node + " is not used for a while if other nodes suffice"};
  const auto recent = std::ranges::count_if(failures, [&](const Failure& failure) {
    return failure.node.empty() && last.when - failure.when <= limits.window;
  });
  const auto allowed = std::to_string(limits.allowed);
  if (recent > limits.allowed)
    return {What::fails_too_often,
            "failure " + std::to_string(recent) +
                " within limits.strike_window, and limits.strikes = " + allowed};
  return {What::try_again, "failure " + std::to_string(recent) + " of at most " + allowed +
                               " within limits.strike_window"};
}

}  // namespace troupe::actors
