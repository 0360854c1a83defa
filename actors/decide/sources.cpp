#include "actors/decide/sources.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

namespace troupe::actors {
namespace {

bool has(const std::vector<KeptStep>& kept, std::int64_t step, int optimizer) {
  return std::ranges::any_of(kept, [&](const KeptStep& one) {
    return one.step == step && std::ranges::count(one.optimizers, optimizer) > 0;
  });
}

/// Returns by optimizer the process that gives its state; nothing if some state is missing.
std::optional<std::vector<int>> givers_of(const KnownStates& known, std::int64_t step) {
  const int processes = static_cast<int>(known.kept.size());
  std::vector<int> givers;
  for (std::size_t i = 0; i < known.owners.size(); ++i) {
    // Start with the optimizer's own process, so that not one process gives all states.
    int giver = -1;
    for (int at = 0; at < processes && giver < 0; ++at) {
      const int process = (known.owners[i] + at) % processes;
      if (has(known.kept[static_cast<std::size_t>(process)], step, static_cast<int>(i)))
        giver = process;
    }
    if (giver < 0) return {};
    givers.push_back(giver);
  }
  return givers;
}

}  // namespace

std::vector<StateSource> sources_of(const KnownStates& known) {
  std::vector<StateSource> sources;
  std::set<std::int64_t> steps;
  for (const auto& of_one : known.kept)
    for (const auto& one : of_one)
      if (one.step <= known.committed) steps.insert(one.step);
  for (const auto step : steps)
    if (auto givers = givers_of(known, step))
      sources.push_back({StateSource::From::memory, step, std::move(*givers)});
  for (const auto step : known.saved) sources.push_back({StateSource::From::checkpoint, step, {}});
  if (!known.was_ever_saved) sources.push_back({StateSource::From::seed, 0, {}});
  std::ranges::stable_sort(sources, [](const StateSource& one, const StateSource& other) {
    return std::pair(one.step, one.from) > std::pair(other.step, other.from);
  });
  return sources;
}

}  // namespace troupe::actors
