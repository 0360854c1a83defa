#include "simulation/copies.h"

#include <algorithm>

namespace troupe::simulation {

void Copies::begin(std::uint64_t epoch, std::int64_t step) {
  // Each node of the plan calls begin(), so only the first call counts.
  if (epoch <= epoch_) return;
  epoch_ = epoch;
  told_ = step;
  // One account stands for all nodes, because a simulated step is kept by all nodes or by none.
  recovery_points_ =
      actors::RecoveryPoints(step, 1, 1, losses_.between(clock_.now().time_since_epoch()));
  std::erase_if(steps_, [step](const auto& entry) { return entry.first != step; });
}

bool Copies::keep(const Given& given) {
  if (given.epoch != epoch_ || !is_to_be_kept(given)) return false;
  Copy copy{0, given.owner, {}, clock_.now() + given.travel};
  const auto nodes = given.members.size();
  const auto mine = static_cast<std::size_t>(std::ranges::find(given.members, given.owner) -
                                             given.members.begin());
  for (std::size_t next = 1; next < std::min(static_cast<std::size_t>(each_), nodes); ++next)
    copy.others.push_back(given.members[(mine + next) % nodes]);
  for (const auto& [unit, weight] : given.weights) {
    copy.weight = weight;
    steps_[given.step].insert_or_assign(unit, copy);
  }
  return true;
}

/// Decides at the first report of a step whether all nodes keep it.
bool Copies::is_to_be_kept(const Given& given) {
  if (given.step <= told_) return steps_.contains(given.step);
  told_ = given.step;
  const Time now = clock_.now();
  // Every node has finished the previous step, because otherwise this one could not be done.
  if (!steps_.empty() && there(steps_.rbegin()->second) <= now)
    recovery_points_.kept(steps_.rbegin()->first, given.copying);
  if (!recovery_points_.may_ask(now.time_since_epoch())) return false;
  recovery_points_.ask(given.step, now.time_since_epoch());
  steps_.erase(steps_.begin(), steps_.lower_bound(recovery_points_.line()));
  steps_[given.step];
  return true;
}

Time Copies::there(const Step& step) const {
  Time last{};
  for (const auto& [unit, copy] : step) last = std::max(last, copy.there);
  return last;
}

void Copies::lose(Life life) {
  lost_.insert(life);
  losses_.lost(clock_.now().time_since_epoch());
  for (auto& [number, step] : steps_)
    for (auto& [unit, copy] : step)
      if (copy.owner == life && copy.there > clock_.now()) copy.others.clear();
}

std::optional<std::uint64_t> Copies::find(int unit, std::int64_t step) const {
  const auto at = steps_.find(step);
  if (at == steps_.end()) return {};
  const auto found = at->second.find(unit);
  if (found == at->second.end()) return {};
  const Copy& copy = found->second;
  const auto lives = [this](Life life) { return !lost_.contains(life); };
  const bool is_there =
      lives(copy.owner) || (copy.there <= clock_.now() && std::ranges::any_of(copy.others, lives));
  return is_there ? std::optional(copy.weight) : std::nullopt;
}

std::int64_t Copies::newest(int units, std::int64_t most) const {
  for (auto at = steps_.rbegin(); at != steps_.rend(); ++at) {
    if (at->first > most) continue;
    bool has_all = true;
    for (int unit = 0; unit < units && has_all; ++unit) has_all = find(unit, at->first).has_value();
    if (has_all) return at->first;
  }
  return 0;
}

}  // namespace troupe::simulation
