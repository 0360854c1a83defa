#include <algorithm>

#include "schedules/partition/partition_methods.h"

namespace troupe::schedules {

namespace {

// The budget of stages visited; the cuts are good by then.
constexpr std::int64_t most_visits = 4'000'000;

/// Returns whether cuts ascend and skip no required cut.
bool allowed(const ChainSums& sums, const std::vector<int>& places) {
  for (std::size_t k = 0; k + 1 < places.size(); ++k)
    if (places[k] >= places[k + 1] || places[k + 1] > sums.next_required(places[k])) return false;
  return true;
}

/// Returns whether two borders separate the same two devices, in either order.
bool same_devices(const PartitionProblem& problem, int border, int other) {
  const auto devices = [&](int b) {
    return std::minmax(problem.seats[b - 1].device, problem.seats[b].device);
  };
  const auto [a, b] = devices(border);
  const auto [c, d] = devices(other);
  return a == c && b == d;
}

/// Balances the stages as if each seat had its own device of unlimited memory.
std::optional<std::vector<int>> balanced(const PartitionProblem& problem, const ChainSums& sums) {
  PartitionProblem alone = problem;
  alone.hops = Hops::hidden;
  alone.devices.clear();
  for (std::size_t k = 0; k < alone.seats.size(); ++k) {
    alone.seats[k].device = static_cast<int>(k);
    alone.seats[k].next = {};
    alone.devices.push_back({problem.devices[problem.seats[k].device].speed});
  }
  const StraightCutter cutter(alone, sums);
  return least_bottleneck(
      0, [&](double t) { return cutter.cut(t); },
      [&](const std::vector<int>& places) { return bottleneck(alone, sums, places); });
}

}  // namespace

std::vector<Bytes> held_memory(const PartitionProblem& problem, const ChainSums& sums,
                               const std::vector<int>& places) {
  std::vector<Bytes> held(problem.devices.size(), 0);
  std::vector<Bytes> passing(problem.devices.size(), 0);
  for (std::size_t k = 0; k < problem.seats.size(); ++k) {
    const Seat& seat = problem.seats[k];
    held[seat.device] += sums.untied_memory(places[k], places[k + 1], seat);
    passing[seat.device] = std::max(passing[seat.device], sums.passing(places[k], places[k + 1]));
  }
  for (std::size_t d = 0; d < held.size(); ++d) held[d] += passing[d];
  const auto device = [&](int piece) {
    const auto stage = std::upper_bound(places.begin(), places.end(), piece) - places.begin() - 1;
    return problem.seats[stage].device;
  };
  for (const Tie& tie : sums.ties())
    if (device(tie.first) != device(tie.second)) held[device(tie.second)] += tie.bytes;
  return held;
}

std::vector<Seconds> busy_times(const PartitionProblem& problem, const ChainSums& sums,
                                const std::vector<int>& places) {
  const int stages = static_cast<int>(problem.seats.size());
  std::vector<double> work(problem.devices.size(), 0);
  std::vector<double> hops(problem.devices.size(), 0);
  for (int k = 0; k < stages; ++k) {
    const Seat& seat = problem.seats[k];
    work[seat.device] += sums.work(places[k], places[k + 1]);
    if (problem.hops == Hops::hidden) continue;
    if (k > 0)
      hops[seat.device] += hop(problem.seats[k - 1].next, sums.boundary(places[k])).count();
    if (k + 1 < stages) hops[seat.device] += hop(seat.next, sums.boundary(places[k + 1])).count();
  }
  std::vector<Seconds> times;
  for (std::size_t d = 0; d < work.size(); ++d)
    times.emplace_back(work[d] / problem.devices[d].speed + hops[d]);
  return times;
}

double bottleneck(const PartitionProblem& problem, const ChainSums& sums,
                  const std::vector<int>& places) {
  double most = 0;
  for (Seconds time : busy_times(problem, sums, places)) most = std::max(most, time.count());
  if (problem.hops == Hops::hidden)
    for (std::size_t k = 0; k + 1 < problem.seats.size(); ++k)
      most = std::max(most, occupied(problem.seats[k].next, sums.boundary(places[k + 1])).count());
  return most;
}

CutScore score(const PartitionProblem& problem, const ChainSums& sums,
               const std::vector<int>& places) {
  CutScore result;
  const auto held = held_memory(problem, sums, places);
  for (std::size_t d = 0; d < held.size(); ++d) {
    result.fullest = std::max(result.fullest, static_cast<double>(held[d]));
    if (held[d] > problem.devices[d].memory)
      result.excess += static_cast<double>(held[d] - problem.devices[d].memory);
  }
  result.bottleneck = bottleneck(problem, sums, places);
  for (std::size_t k = 0; k < problem.seats.size(); ++k) {
    const double time =
        sums.work(places[k], places[k + 1]) / problem.devices[problem.seats[k].device].speed;
    result.unevenness += time * time;
  }
  return result;
}

std::vector<int> improve_borders(const PartitionProblem& problem, const ChainSums& sums,
                                 std::vector<int> places) {
  const int stages = static_cast<int>(problem.seats.size());
  std::int64_t visits = 0;
  CutScore best = score(problem, sums, places);
  const auto adopt = [&](const std::vector<int>& candidate) {
    visits += stages;
    if (!allowed(sums, candidate)) return false;
    const CutScore now = score(problem, sums, candidate);
    if (!(now < best)) return false;
    best = now;
    places = candidate;
    return true;
  };
  // Neighbouring borders move together: the stage at one end gains what the one at the other loses.
  const auto move_runs = [&](int length) {
    bool helped = false;
    for (int first = 1; first + length <= stages && visits < most_visits; ++first) {
      for (int step : {-1, 1}) {
        auto candidate = places;
        for (int border = first; border < first + length; ++border) candidate[border] += step;
        helped = adopt(candidate) || helped;
      }
    }
    return helped;
  };
  // Two devices exchange pieces at two of their common borders.
  const auto exchange = [&] {
    bool helped = false;
    for (int border = 1; border < stages && visits < most_visits; ++border) {
      for (int other = border + 1; other < stages; ++other) {
        if (!same_devices(problem, border, other)) continue;
        for (int step : {-1, 1}) {
          for (int other_step : {-1, 1}) {
            auto candidate = places;
            candidate[border] += step;
            candidate[other] += other_step;
            helped = adopt(candidate) || helped;
          }
        }
      }
    }
    return helped;
  };
  for (int length = 1; length < stages && visits < most_visits;) {
    const bool helped = move_runs(length) || (length == 1 && exchange());
    length = helped ? 1 : length + 1;
  }
  return places;
}

std::vector<int> cut_anyhow(const PartitionProblem& problem, const ChainSums& sums) {
  const auto start = balanced(problem, sums);
  assert(start && "without memory any number of pieces fits that is large enough");
  return improve_borders(problem, sums, *start);
}

}  // namespace troupe::schedules
