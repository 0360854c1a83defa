#include "actors/lead/copies.h"

#include <algorithm>

namespace troupe::actors {
namespace {

constexpr std::size_t most_rounds_before = 64;

}  // namespace

void Copies::begun(const Assembled& assembled, caf_shim::TimePoint now) {
  lines_ = Lines(assembled.step, assembled.copies, assembled.nodes_here,
                 losses_.between(now.time_since_epoch()));
}

std::optional<KeepStep> Copies::ask(std::int64_t step, caf_shim::TimePoint now) {
  if (!lines_.may_ask(now.time_since_epoch())) return {};
  lines_.ask(step, now.time_since_epoch());
  return KeepStep{step, lines_.line()};
}

std::optional<std::string> Copies::heard(const Kept& kept) {
  if (kept.why_not.empty() && !kept.is_late) {
    lines_.kept(kept.step, kept.took);
    return {};
  }
  if (!lines_.missed(kept.step)) return {};
  if (kept.is_late) {
    rounds_before_ = std::min(2 * rounds_before_, most_rounds_before);
    return {};
  }
  lines_ = {};
  return "no copies of its state are kept in memory: " + kept.why_not;
}

}  // namespace troupe::actors
