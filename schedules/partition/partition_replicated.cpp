#include "schedules/partition/partition_replicated.h"

#include <algorithm>
#include <cmath>

#include "core/byte_text.h"
#include "schedules/partition/partition_methods.h"

namespace troupe::schedules {

namespace {

struct Stages {
  std::vector<int> places;
  std::vector<int> replicas;
};

class ReplicatedCutter {
 public:
  ReplicatedCutter(const ReplicatedProblem& problem, const ChainSums& sums)
      : problem_(problem), sums_(sums) {}

  /// Returns stages that take at most t each, or nothing if there are not enough devices.
  std::optional<Stages> cut(double t) const;

  double bottleneck(const Stages& stages) const;
  std::int64_t evaluations() const { return evaluations_; }

 private:
  int fewest_replicas(int i, int j, int after, double t) const;
  double computing(int i, int j, int replicas) const {
    ++evaluations_;
    return sums_.work(i, j) / problem_.device.speed / replicas;
  }
  double reducing(int i, int j, int replicas) const;
  double receiving(int i) const {
    return i == 0 ? 0 : occupied(problem_.link, sums_.boundary(i)).count();
  }
  int never() const { return problem_.devices + 1; }

  const ReplicatedProblem& problem_;
  const ChainSums& sums_;
  mutable std::int64_t evaluations_ = 0;
};

double ReplicatedCutter::reducing(int i, int j, int replicas) const {
  // A ring all-reduce sends (and receives) all parts except its own twice.
  const double rounds = 2.0 * (replicas - 1) / replicas;
  return rounds * occupied(problem_.link, sums_.reduced(i, j)).count() / problem_.micro_batches;
}

/// Returns the fewest replicas for a stage with `after` devices behind it, or never(). More
/// replicas compute faster and hold fewer micro-batches each, but reduce for longer.
int ReplicatedCutter::fewest_replicas(int i, int j, int after, double t) const {
  const double computing_rounds = std::ceil(computing(i, j, 1) / t);
  if (!(computing_rounds <= problem_.devices)) return never();
  int replicas = std::max(1, static_cast<int>(computing_rounds));
  while (computing(i, j, replicas) > t) ++replicas;

  const auto fits = [&](int in_flight) {
    ++evaluations_;
    return sums_.memory(i, j, {.device = 0, .in_flight = in_flight, .copies = 1, .next = {}}) <=
           problem_.device.memory;
  };
  const auto in_flight = [&](int count) {
    return std::min(problem_.micro_batches, 1 + (after + count - 1) / count);
  };
  int enough = problem_.devices;
  if (!fits(in_flight(enough))) return never();
  for (int too_few = replicas - 1; enough - too_few > 1 && enough > replicas;) {
    const int middle = too_few + (enough - too_few) / 2;
    (fits(in_flight(middle)) ? enough : too_few) = middle;
  }
  replicas = std::max(replicas, enough);
  return reducing(i, j, replicas) <= t ? replicas : never();
}

/// Goes backwards along the chain and finds the fewest devices for the rest. Fewer devices after a
/// stage also mean fewer micro-batches in flight in it, so the fewest are best in every respect.
std::optional<Stages> ReplicatedCutter::cut(double t) const {
  const int size = sums_.size();
  std::vector<int> needed(size + 1, never());
  std::vector<int> end(size + 1, size);
  std::vector<int> replicas(size + 1, 0);
  needed[size] = 0;
  for (int i = size - 1; i >= 0; --i) {
    if (receiving(i) > t) continue;
    for (int j = i + 1; j <= sums_.next_required(i); ++j) {
      if (computing(i, j, problem_.devices) > t) break;
      if (needed[j] == never()) continue;
      const int own = fewest_replicas(i, j, needed[j], t);
      if (own + needed[j] >= needed[i]) continue;
      needed[i] = own + needed[j];
      end[i] = j;
      replicas[i] = own;
    }
  }
  if (needed[0] == never()) return std::nullopt;
  Stages stages{{0}, {}};
  for (int i = 0; i < size; i = end[i]) {
    stages.places.push_back(end[i]);
    stages.replicas.push_back(replicas[i]);
  }
  return stages;
}

double ReplicatedCutter::bottleneck(const Stages& stages) const {
  double most = 0;
  for (std::size_t k = 0; k < stages.replicas.size(); ++k) {
    const int i = stages.places[k];
    const int j = stages.places[k + 1];
    most = std::max({most, computing(i, j, stages.replicas[k]), reducing(i, j, stages.replicas[k]),
                     receiving(i)});
  }
  return most;
}

}  // namespace

Result<ReplicatedPartition> partition_replicated(const ReplicatedProblem& problem) {
  if (problem.devices < 1 || problem.devices > 1 << 20 || problem.micro_batches < 1)
    return Error{"a pipeline needs 1 to 1048576 devices and at least one micro-batch"};
  PartitionProblem alone;
  alone.chain = problem.chain;
  alone.devices = {problem.device};
  alone.seats = {{.device = 0,
                  .in_flight = std::min(problem.micro_batches, problem.devices),
                  .copies = 1,
                  .next = problem.link}};
  if (Status sound = check_problem(alone); !sound) return sound.error();

  const ChainSums sums(problem.chain);
  const ReplicatedCutter cutter(problem, sums);
  const auto stages = least_bottleneck(
      0, [&](double t) { return cutter.cut(t); },
      [&](const Stages& found) { return cutter.bottleneck(found); });
  if (!stages)
    return Error{"the model does not fit on " + std::to_string(problem.devices) + " devices of " +
                 byte_text(problem.device.memory) +
                 " each, however it is cut and replicated; use more devices, smaller "
                 "micro-batches or recomputation"};
  return ReplicatedPartition{sums.in_chain(stages->places), stages->replicas,
                             Seconds(cutter.bottleneck(*stages)), cutter.evaluations()};
}

}  // namespace troupe::schedules
