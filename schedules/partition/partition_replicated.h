#pragma once

#include <vector>

#include "core/result.h"
#include "schedules/partition/partition.h"

namespace troupe::schedules {

/// Equal devices, several of which may hold copies of one stage and take its micro-batches in turn
/// (Narayanan et al. 2019).
struct ReplicatedProblem {
  Chain chain;  // Ties are counted as two copies.
  Capacity device;
  int devices = 1;
  Link link;              // Between any two.
  int micro_batches = 1;  // Between two reductions of the gradients; no more are in flight.
};

/// Stage k holds the units from cuts[k] up to cuts[k + 1] on replicas[k] devices.
struct ReplicatedPartition {
  std::vector<int> cuts;
  std::vector<int> replicas;
  Seconds bottleneck{};  // Per micro-batch of the whole pipeline.
};

/// The stages and their replicas that make the slowest stage as fast as possible: of its work, of
/// the reduction of its gradients (a ring, spread over the micro-batches of a step) and of what it
/// receives. A stage whose replicas and those after it are n in all has ceil(n / replicas)
/// micro-batches in flight on each. Exact; the time does not depend on the number of devices.
Result<ReplicatedPartition> partition_replicated(const ReplicatedProblem& problem);

}  // namespace troupe::schedules
