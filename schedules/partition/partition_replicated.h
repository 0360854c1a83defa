#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "schedules/partition/partition.h"

namespace troupe::schedules {

/// Equal devices. Several may hold copies of one stage and take its micro-batches in turn
/// (Narayanan et al. 2019).
struct ReplicatedProblem {
  Chain chain;  // Ties count as two copies.
  Capacity device;
  int devices = 1;
  Link link;              // Between any two devices.
  int micro_batches = 1;  // Between two gradient reductions; also the limit in flight.
};

/// The result. Stage k holds the units from cuts[k] up to cuts[k + 1] on replicas[k] devices.
struct ReplicatedPartition {
  std::vector<int> cuts;
  std::vector<int> replicas;
  Seconds bottleneck{};          // Time per micro-batch of the whole pipeline.
  std::int64_t evaluations = 0;  // How often the search computed a stage's time or memory.
};

/// Finds stages and replica counts that minimize the time of the slowest stage. That time is the
/// largest of compute, gradient reduction (a ring, spread over a step's micro-batches) and
/// receiving. If a stage and the stages after it have n devices in total, each of its replicas has
/// ceil(n / replicas) micro-batches in flight. Exact; the work grows with the logarithm of the
/// device count.
Result<ReplicatedPartition> partition_replicated(const ReplicatedProblem& problem);

}  // namespace troupe::schedules
