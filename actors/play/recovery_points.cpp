#include "actors/play/recovery_points.h"

#include <algorithm>
#include <cmath>

namespace troupe::actors {
namespace {

// Copies may cost 1/share of all nodes' time,
constexpr int share = 100;
// or 1/most_share if losses are frequent.
constexpr int most_share = 5;
// The first copies of an attempt use fresh memory, which costs extra once.
constexpr int first_lines = 2;
constexpr auto first_pause = std::chrono::seconds(1);
constexpr std::size_t losses_known = 8, fewest_losses = 3;
constexpr auto seldom = std::chrono::hours(24);
// Optimizers copy their moments to send them, and channels copy what they carry: together about as
// much as the keepers copy.
constexpr int copied_elsewhere = 2;

}  // namespace

std::vector<std::vector<int>> keepers_of(std::span<const int> owners,
                                         std::span<const std::string> machines, int copies) {
  const int processes = static_cast<int>(machines.size());
  const auto machine = [&](int process) -> const std::string& {
    return machines[static_cast<std::size_t>(process)];
  };
  std::vector<std::vector<int>> all;
  for (const int owner : owners) {
    std::vector<int> keepers{owner};
    std::vector<int> others;
    for (int i = 1; i < processes; ++i) others.push_back((owner + i) % processes);
    while (static_cast<int>(keepers.size()) < copies && !others.empty()) {
      const auto elsewhere = std::ranges::find_if(others, [&](int other) {
        return std::ranges::none_of(keepers,
                                    [&](int one) { return machine(one) == machine(other); });
      });
      const auto chosen = elsewhere == others.end() ? others.begin() : elsewhere;
      keepers.push_back(*chosen);
      others.erase(chosen);
    }
    all.push_back(std::move(keepers));
  }
  return all;
}

void LossRate::lost(Time now) {
  last_.push_back(now);
  if (last_.size() > losses_known) last_.pop_front();
}

LossRate::Time LossRate::between(Time now) const {
  if (last_.size() < fewest_losses) return seldom;
  return (now - last_.front()) / static_cast<int>(last_.size());
}

void RecoveryPoints::ask(std::int64_t step, Time now) { asked_ = {step, now, 0, {}}; }

void RecoveryPoints::kept(std::int64_t step, Time took) {
  if (!asked_ || asked_->step != step) return;
  ++asked_->kept;
  asked_->took += took;
  complete();
}

bool RecoveryPoints::missed(std::int64_t step) {
  if (!asked_ || asked_->step != step) return false;
  asked_.reset();
  return true;
}

void RecoveryPoints::entered(std::int64_t steps) {
  entered_ = steps;
  complete();
}

void RecoveryPoints::complete() {
  if (!asked_ || asked_->kept < copies_ || entered_ < asked_->step) return;
  line_ = asked_->step;
  next_ = asked_->when + pause_after(copied_elsewhere * asked_->took / nodes_);
  asked_.reset();
}

/// Returns the time between two recovery points. Each costs a node `cost`, and a loss repeats half
/// an interval on average. The sum of both is minimal at sqrt(2 * cost * time between losses).
RecoveryPoints::Time RecoveryPoints::pause_after(Time cost) {
  const double best = std::sqrt(2.0 * static_cast<double>(cost.count()) *
                                static_cast<double>(between_losses_.count()));
  const auto pause =
      std::clamp(Time(static_cast<std::int64_t>(best)), most_share * cost, share * cost);
  return ++made_ <= first_lines ? std::min<Time>(pause, first_pause) : pause;
}

}  // namespace troupe::actors
