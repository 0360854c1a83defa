#include "storage/data/markov_chain.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "storage/data/draws.h"
#include "storage/data/order.h"

namespace troupe::storage {
namespace {

constexpr std::uint64_t certain = std::uint64_t{1} << 32;

/// Returns the probability of an arc, exact in a double.
double probability(const std::vector<MarkovChain::Arc>& arcs, std::size_t i) {
  return static_cast<double>(arcs[i].below - (i ? arcs[i - 1].below : 0)) * 0x1p-32;
}

}  // namespace

MarkovChain::MarkovChain(std::vector<std::vector<Arc>> arcs) : arcs_(std::move(arcs)) {
  assert(!arcs_.empty());
  for (const auto& each : arcs_) {
    assert(!each.empty() && each.back().below == certain);
    for (const auto& arc : each) assert(arc.next >= 0 && arc.next < states());
  }
  find_stationary();
}

MarkovChain MarkovChain::drawn(std::uint64_t seed, std::int32_t states, std::int32_t successors) {
  assert(successors >= 1 && successors <= states);
  std::vector<std::vector<Arc>> arcs(static_cast<std::size_t>(states));
  for (std::int32_t state = 0; state < states; ++state) {
    auto& own = arcs[static_cast<std::size_t>(state)];
    Draws draws({seed, source_stream}, state);
    std::vector<std::uint64_t> weights;
    std::uint64_t total = 0;
    for (std::int32_t i = 0; i < successors; ++i) {
      weights.push_back(static_cast<std::uint64_t>(draws.between(1, 4096)));
      total += weights.back();
    }
    std::uint64_t sum = 0;
    for (std::int32_t i = 0; i < successors; ++i) {
      sum += weights[static_cast<std::size_t>(i)];
      // The first arc leads to the next state. These arcs form a cycle through all states, so that
      // every state is reachable. The remaining arcs lead to distinct other states.
      const auto away = i == 0 ? 1 : 2 + permute(seed, state, i - 1, states - 1);
      own.push_back({static_cast<std::int32_t>((state + away) % states), sum * certain / total});
    }
  }
  return MarkovChain(std::move(arcs));
}

void MarkovChain::find_stationary() {
  const auto count = arcs_.size();
  stationary_.assign(count, 1.0 / static_cast<double>(count));
  std::vector<double> next(count);
  // Half of each state's weight stays. That keeps the limit and prevents oscillation in a periodic
  // chain. Sums and products in a fixed order give the same numbers, and so the same thresholds, on
  // every machine.
  double change = 1;
  for (int round = 0; round < 20'000 && change > 1e-14; ++round) {
    for (std::size_t s = 0; s < count; ++s) next[s] = 0.5 * stationary_[s];
    for (std::size_t s = 0; s < count; ++s)
      for (std::size_t i = 0; i < arcs_[s].size(); ++i)
        next[static_cast<std::size_t>(arcs_[s][i].next)] +=
            0.5 * stationary_[s] * probability(arcs_[s], i);
    change = 0;
    for (std::size_t s = 0; s < count; ++s) change += std::abs(next[s] - stationary_[s]);
    stationary_.swap(next);
  }
  double sum = 0;
  start_below_.resize(count);
  for (std::size_t s = 0; s < count; ++s) {
    sum += stationary_[s];
    start_below_[s] = static_cast<std::uint64_t>(std::min(sum, 1.0) * 0x1p32);
  }
  start_below_.back() = certain;
}

std::int32_t MarkovChain::start(std::uint32_t word) const {
  const auto at = std::upper_bound(start_below_.begin(), start_below_.end(), word);
  return static_cast<std::int32_t>(at - start_below_.begin());
}

std::int32_t MarkovChain::next(std::int32_t state, std::uint32_t word) const {
  for (const auto& arc : arcs_[static_cast<std::size_t>(state)])
    if (word < arc.below) return arc.next;
  assert(!"the last arc takes every word");
  return 0;
}

double MarkovChain::entropy_rate() const {
  double rate = 0;
  for (std::size_t s = 0; s < arcs_.size(); ++s)
    for (std::size_t i = 0; i < arcs_[s].size(); ++i)
      if (const double p = probability(arcs_[s], i); p > 0)
        rate -= stationary_[s] * p * std::log(p);
  return rate;
}

}  // namespace troupe::storage
