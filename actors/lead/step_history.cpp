#include "actors/lead/step_history.h"

#include <cmath>
#include <numeric>
#include <utility>

namespace troupe::actors {
namespace {

constexpr std::size_t recent_steps = 20;
constexpr int steps_in_pace = 8;

}  // namespace

void StepHistory::begun(std::int64_t step, caf_shim::TimePoint now) {
  step_begins(now);
  goodput_.begun(step, now);
}

caf_shim::Duration StepHistory::done(const StepLedger::Entry& entry, caf_shim::TimePoint now) {
  const auto took = now - std::exchange(step_began_, now);
  goodput_.done(took);
  pace_ += (took - pace_) / steps_in_pace;
  skipped_steps_ = entry.done->skipped_steps;
  if (entry.losses.counted() > 0 && std::isfinite(entry.losses.mean()))
    recent_losses_.push_back(entry.losses.mean());
  if (recent_losses_.size() > recent_steps) recent_losses_.pop_front();
  return took;
}

std::optional<caf_shim::Duration> StepHistory::time_on_device(const RoundUnderWay& round) {
  if (round.play.round->steps != 1) {
    device_ended_.reset();
    return {};
  }
  const auto [began, ended] = round.of_first;
  const auto took = ended - std::exchange(device_ended_, ended).value_or(began);
  // A node that lies or whose clock was set back says nothing.
  if (took.count() <= 0) return {};
  return took;
}

void StepHistory::resumed(caf_shim::TimePoint now) {
  step_begins(now);
  goodput_.paused(now - paused_at_);
}

double StepHistory::recent_loss() const {
  if (recent_losses_.empty()) return 0;
  return std::accumulate(recent_losses_.begin(), recent_losses_.end(), 0.0) /
         static_cast<double>(recent_losses_.size());
}

}  // namespace troupe::actors
