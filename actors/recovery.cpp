#include "actors/recovery.h"

#include <algorithm>
#include <cassert>

namespace troupe::actors {

Verdict judge(const std::vector<Failure>& failures, const Strikes& strikes) {
  assert(!failures.empty());
  const Failure& last = failures.back();
  const bool known = std::any_of(failures.begin(), failures.end() - 1, [&](const Failure& before) {
    const bool elsewhere = last.node.empty() || before.node != last.node;
    return elsewhere && before.why == last.why;
  });
  if (known) return {Verdict::What::give_up, "the same failure occurred twice at the same place"};
  if (!last.node.empty())
    return {Verdict::What::try_again,
            "node " + last.node + " is not used for a while if other nodes suffice"};
  const auto recent = std::ranges::count_if(failures, [&](const Failure& failure) {
    return failure.node.empty() && last.when - failure.when <= strikes.window;
  });
  if (recent > strikes.allowed)
    return {Verdict::What::give_up, "failure " + std::to_string(recent) +
                                        " within limits.strike_window, and limits.strikes = " +
                                        std::to_string(strikes.allowed)};
  return {Verdict::What::try_again, "failure " + std::to_string(recent) + " of at most " +
                                        std::to_string(strikes.allowed) +
                                        " within limits.strike_window"};
}

std::optional<Standstill> find_standstill(const std::vector<Standing>& all,
                                          const Allowed& allowed) {
  for (const auto& one : all)
    if (one.silent > allowed.usual) return Standstill{one.who, "it no longer answers"};

  const Standing* root = nullptr;
  for (const auto& one : all) {
    if (!one.wait) continue;
    if (one.patiences < allowed.of(one.wait)) return {};
    const bool computes = one.wait.on == Wait::On::executor;
    if (!root || (computes && root->wait.on == Wait::On::message)) root = &one;
  }
  if (!root) return {};
  return Standstill{root->who, root->wait.what + ", and no player has made progress for too long"};
}

}  // namespace troupe::actors
