#include "actors/recovery.h"

#include <algorithm>
#include <cassert>

namespace troupe::actors {

Verdict judge(const std::vector<Failure>& failures, const Strikes& strikes) {
  assert(!failures.empty());
  const Failure& last = failures.back();
  if (failures.size() > 1) {
    const Failure& before = failures[failures.size() - 2];
    if (before.why == last.why && before.step == last.step)
      return {Verdict::What::give_up, "the same came twice at the same place"};
  }
  const auto recent = std::ranges::count_if(
      failures, [&](const Failure& failure) { return last.when - failure.when <= strikes.window; });
  if (recent > strikes.allowed)
    return {Verdict::What::give_up,
            "it is failure " + std::to_string(recent) +
                " in a short time, and limits.strikes = " + std::to_string(strikes.allowed)};
  return {Verdict::What::try_again, "it is failure " + std::to_string(recent) + " of at most " +
                                        std::to_string(strikes.allowed) + " in a short time"};
}

}  // namespace troupe::actors
