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

/// The quantity to minimize: the time of one step, or the distance of steps without a barrier.
enum class Objective : std::uint8_t { makespan, period };

struct SearchRequest {
  int devices = 1;
  int micro_batches = 1;
  /// The possible cuts of the model. Costs of v * devices stages are for v stages on a device; each
  /// v occurs once. Candidates with another v are skipped.
  std::vector<Costs> partitions;
  std::vector<double> caps;  // Activation limit of each device; empty: no limit.
  Objective objective = Objective::makespan;
  int weight_copies = 1;  // With 2, candidates that hold each stage on two devices are included.
  /// The search budget in simulated actions (a core simulates more than 20 million a second). Named
  /// schedules are always evaluated.
  std::int64_t effort = 100'000'000;
  /// Polled between candidates. Once it returns true, the search ends with the best so far. Only a
  /// search without interruption gives the same answer on all machines.
  std::function<bool()> interrupted = [] { return false; };
};

/// A schedule that was evaluated.
struct Candidate {
  std::string
      name;  // "zb-v", "retime(split(1f1b),backward-first,0)", "list(v4,loop,window-8,deepest)"
  int chunks = 1;
  double makespan = 0;
  double period = 0;
  double largest_peak = 0;
};

struct SearchResult {
  Schedule schedule;  // The best passes, under the candidate's name.
  Costs costs;        // The partition of the best.
  Simulation simulation;
  LowerBound bound;                // No candidate can be faster.
  std::vector<Candidate> ranking;  // The best candidates within the caps, best first.
  Candidate best_named;            // The best named schedule; its name is empty if none fits.
  int evaluations = 0;
  std::string why_stopped;
};

/// Searches a portfolio: all named synchronous schedules, re-timed ones, and lists made from the
/// costs. Then joins backward halves in the best ones and runs a local search. Never worse than the
/// best named schedule within the caps. Deterministic. If nothing fits, the error says which cap
/// the closest candidate exceeds, and by how much.
Result<SearchResult> search(const SearchRequest& request);

/// Formats the ranking as a table, with the bound and the reason why the search ended.
std::string to_table(const SearchResult& result);

}  // namespace troupe::schedules
