#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "schedules/schedule.h"
#include "schedules/simulate/simulate.h"
#include "schedules/simulate/simulate_bounds.h"

namespace troupe::schedules {

/// What a search makes small: one step on its own, or the distance of steps without a barrier.
enum class Objective : std::uint8_t { makespan, period };

struct SearchRequest {
  int devices = 1;
  int micro_batches = 1;
  /// The ways in which the model may be cut, each once: for v stages on a device, costs of
  /// v * devices stages. Candidates that need a v that is not here are left out.
  std::vector<Costs> partitions;
  std::vector<double> caps;  // On the activations of each device; empty: no bound.
  Objective objective = Objective::makespan;
  int weight_copies = 1;  // With 2, candidates that hold each stage on two devices take part.
  /// The bound on the search, in actions played: a core plays more than 20 million in a second. The
  /// named schedules are always looked at.
  std::int64_t effort = 100'000'000;
  /// Asked between candidates; once it says true the search ends with the best so far. Only a
  /// request that never says so has one answer on all machines.
  std::function<bool()> interrupted = [] { return false; };
};

/// One schedule that was looked at.
struct Candidate {
  std::string
      name;  // "zb-v", "retime(split(1f1b),backward-first,0)", "list(v4,loop,window-8,deepest)"
  int chunks = 1;
  double makespan = 0;
  double period = 0;
  double largest_peak = 0;
};

struct SearchResult {
  Schedule schedule;  // The passes of the best, under its candidate's name.
  Costs costs;        // The partition that it is for.
  Simulation simulation;
  LowerBound bound;                // Below this no candidate can come, however many there were.
  std::vector<Candidate> ranking;  // The best and the next best ones within the caps.
  Candidate best_named;  // The best that has a name of its own; an empty name if none fits.
  int evaluations = 0;
  std::string why_stopped;
};

/// The best of a portfolio: all named synchronous schedules, those re-timed for the costs, and
/// lists made from the costs; of the best ones, halves of backward passes joined again; then local
/// search. Never worse than the best named schedule within the caps. The same request gives the
/// same answer. An error if nothing fits: it says which cap the least hungry candidate breaks, and
/// by how much.
Result<SearchResult> search(const SearchRequest& request);

/// The ranking as a table for people, with the bound and the reason why the search ended.
std::string to_table(const SearchResult& result);

}  // namespace troupe::schedules
