#include "actors/lead/copies.h"

#include <algorithm>

namespace troupe::actors {
namespace {

constexpr std::size_t most_rounds_before = 64;

}  // namespace

void Copies::begun(const Assembled& assembled, caf_shim::TimePoint now) {
  recovery_points_ = RecoveryPoints(assembled.step, assembled.copies, assembled.nodes_here,
                                    losses_.between(now.time_since_epoch()));
}

std::optional<KeepStep> Copies::ask(std::int64_t step, caf_shim::TimePoint now) {
  if (!recovery_points_.may_ask(now.time_since_epoch())) return {};
  recovery_points_.ask(step, now.time_since_epoch());
  return KeepStep{step, recovery_points_.line()};
}

std::optional<std::string> Copies::heard(const Kept& kept) {
  if (kept.why_not.empty() && !kept.is_late) {
    recovery_points_.kept(kept.step, kept.took);
    return {};
  }
  if (!recovery_points_.missed(kept.step)) return {};
  if (kept.is_late) {
    rounds_before_ = std::min(2 * rounds_before_, most_rounds_before);
    return {};
  }
  recovery_points_ = {};
  return "no copies of its state are kept in memory: " + kept.why_not;
}

}  // namespace troupe::actors
