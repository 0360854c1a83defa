#include "schedules/search/search_warm_up.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "schedules/search/search_evaluator.h"

namespace troupe::schedules {
namespace {

/// Prefix sums: the work of all stages before each one, and the hops there and back.
struct RoundTrips {
  std::vector<double> work;
  std::vector<double> hops;

  explicit RoundTrips(const Costs& costs) : work(1, 0.0), hops(1, 0.0) {
    for (std::size_t stage = 0; stage < costs.stages.size(); ++stage) {
      const auto& cost = costs.stages[stage];
      work.push_back(work.back() + 2 * costs.launch +
                     costs.slowness_of(stage) * (cost.forward + cost.backward));
      if (stage + 1 < costs.stages.size())
        hops.push_back(hops.back() + costs.travel(stage, stage + 1, cost.boundary) +
                       costs.travel(stage + 1, stage, cost.boundary_back));
    }
  }

  /// Returns the time from the start of a micro-batch on `first` until its gradient returns there,
  /// if only the stages up to `last` take time.
  double between(std::size_t first, std::size_t last) const {
    return work[last + 1] - work[first] + hops[last] - hops[first];
  }
};

/// Returns the fewest forward passes ahead that allow a micro-batch every `period`. A loop between
/// stages r and q holds n[r] - n[q] + 1 micro-batches, each for one round trip.
std::vector<int> fewest_ahead(const RoundTrips& trips, double period, int most) {
  const auto stages = trips.work.size() - 1;
  std::vector<int> ahead(stages, 1);
  for (auto stage = stages - 1; stage-- > 0;)
    for (auto other = stage + 1; other < stages; ++other) {
      const double rounds = std::ceil(trips.between(stage, other) / period * (1 - rounding));
      const int wanted = ahead[other] - 1 + static_cast<int>(std::min<double>(rounds, most));
      ahead[stage] = std::min(std::max(ahead[stage], wanted), most);
    }
  return ahead;
}

}  // namespace

std::vector<int> best_warm_up(const Costs& costs, const std::vector<double>& caps,
                              int micro_batches) {
  const auto stages = costs.stages.size();
  std::vector<int> most(stages, micro_batches);
  for (std::size_t stage = 0; stage < caps.size(); ++stage) {
    const double held = costs.stages[stage].activations;
    if (held > 0)
      most[stage] = static_cast<int>(
          std::min<double>(micro_batches, std::floor(caps[stage] / held * (1 + rounding))));
    if (most[stage] < 1) return {};
  }
  const RoundTrips trips(costs);
  double fast = 0, slow = trips.between(0, stages - 1);
  for (std::size_t stage = 0; stage < stages; ++stage)
    fast = std::max(fast, trips.between(stage, stage));
  if (!(fast > 0)) return std::vector<int>(stages, 1);

  const auto fits = [&](double period) {
    const auto ahead = fewest_ahead(trips, period, micro_batches);
    return std::equal(ahead.begin(), ahead.end(), most.begin(), std::less_equal<>());
  };
  if (fits(fast)) return fewest_ahead(trips, fast, micro_batches);
  // If micro-batches run one after another, each stage holds only one, which fits.
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = (fast + slow) / 2;
    (fits(middle) ? slow : fast) = middle;
  }
  return fewest_ahead(trips, slow, micro_batches);
}

}  // namespace troupe::schedules
