#include "simulation/copies.h"

#include <algorithm>
#include <cstddef>

namespace troupe::simulation {

void Copies::begin(std::uint64_t attempt, std::int64_t step) {
  attempt_ = attempt;
  // One account stands for all nodes, because a simulated step is kept by all nodes or by none.
  recovery_points_ =
      actors::RecoveryPoints(step, 1, 1, losses_.between(clock_.now().time_since_epoch()));
  std::erase_if(steps_, [step](const auto& entry) { return entry.first != step; });
}

bool Copies::keep(const Step& step) {
  if (each_ < 2 || step.attempt != attempt_ || !is_to_be_kept(step)) return false;
  steps_[step.step] = {keepers(step.members), clock_.now() + step.travel};
  return true;
}

bool Copies::is_to_be_kept(const Step& step) {
  const Time now = clock_.now();
  // Every node has finished the previous step, because otherwise this one could not be done.
  if (!steps_.empty() && steps_.rbegin()->second.there <= now)
    recovery_points_.kept(steps_.rbegin()->first, step.copying);
  if (!recovery_points_.may_ask(now.time_since_epoch())) return false;
  recovery_points_.ask(step.step, now.time_since_epoch());
  steps_.erase(steps_.begin(), steps_.lower_bound(recovery_points_.line()));
  return true;
}

void Copies::lose(Life life) {
  losses_.lost(clock_.now().time_since_epoch());
  for (auto& [number, kept] : steps_)
    for (auto& keepers : kept.keepers) {
      const bool is_owner = !keepers.empty() && keepers.front() == life;
      if (is_owner && kept.there > clock_.now()) keepers.clear();
      std::erase(keepers, life);
    }
}

std::vector<actors::KeptStep> Copies::of(Life life) const {
  std::vector<actors::KeptStep> all;
  for (const auto& [number, kept] : steps_) {
    actors::KeptStep one{number, {}};
    for (int part = 0; part < parts_; ++part) {
      const auto& keepers = kept.keepers[static_cast<std::size_t>(part)];
      const auto found = std::ranges::find(keepers, life);
      if (found == keepers.end()) continue;
      if (found == keepers.begin() || kept.there <= clock_.now()) one.optimizers.push_back(part);
    }
    if (!one.optimizers.empty()) all.push_back(std::move(one));
  }
  return all;
}

std::vector<std::vector<Copies::Life>> Copies::keepers(const std::vector<Life>& members) const {
  std::vector<std::vector<Life>> all;
  const auto nodes = members.size();
  for (int part = 0; part < parts_; ++part) {
    auto& keepers = all.emplace_back();
    for (std::size_t next = 0; next < std::min(static_cast<std::size_t>(each_), nodes); ++next)
      keepers.push_back(members[(static_cast<std::size_t>(part) + next) % nodes]);
  }
  return all;
}

}  // namespace troupe::simulation
