#include "actors/lines.h"

#include <algorithm>
#include <functional>
#include <set>

namespace troupe::actors {
namespace {

// What being ready may cost at most, of the time of all nodes.
constexpr int share = 50;  // One part in so many.
// Who gives a state copies its moments, and channels copy what they carry: as much as the keepers
// do once more.
constexpr int copied_elsewhere = 2;

bool has(const std::vector<KeptStep>& kept, std::int64_t step, int optimizer) {
  return std::ranges::any_of(kept, [&](const KeptStep& one) {
    return one.step == step && std::ranges::count(one.optimizers, optimizer) > 0;
  });
}

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

std::optional<Found> find_newest(std::span<const std::vector<KeptStep>> kept,
                                 std::span<const int> owners, std::int64_t most) {
  std::set<std::int64_t, std::greater<>> steps;
  for (const auto& of_one : kept)
    for (const auto& one : of_one)
      if (one.step <= most) steps.insert(one.step);
  for (const auto step : steps) {
    Found found{step, {}};
    for (std::size_t i = 0; i < owners.size(); ++i) {
      const auto gives = [&](int process) {
        return has(kept[static_cast<std::size_t>(process)], step, static_cast<int>(i));
      };
      // Going round from its own process on, so that not one of them gives all.
      const int processes = static_cast<int>(kept.size());
      int giver = -1;
      for (int at = 0; at < processes && giver < 0; ++at)
        if (const int process = (owners[i] + at) % processes; gives(process)) giver = process;
      if (giver < 0) break;
      found.from.push_back(giver);
    }
    if (found.from.size() == owners.size()) return found;
  }
  return {};
}

void Lines::ask(std::int64_t step, Time now) { asked_ = {step, now, 0, {}}; }

void Lines::kept(std::int64_t step, Time took) {
  if (!asked_ || asked_->step != step) return;
  ++asked_->kept;
  asked_->took += took;
  complete();
}

bool Lines::missed(std::int64_t step) {
  if (!asked_ || asked_->step != step) return false;
  asked_.reset();
  return true;
}

void Lines::entered(std::int64_t steps) {
  entered_ = steps;
  complete();
}

void Lines::complete() {
  if (!asked_ || asked_->kept < copies_ || entered_ < asked_->step) return;
  line_ = asked_->step;
  next_ = asked_->when + copied_elsewhere * share * asked_->took / nodes_;
  asked_.reset();
}

}  // namespace troupe::actors
