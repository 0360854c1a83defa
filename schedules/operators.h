#pragma once

#include <vector>

#include "schedules/schedule.h"

/// What makes one schedule from another. All take a valid schedule and give a valid one.
namespace troupe::schedules {

/// Every B becomes I W.
Schedule split_backward(const Schedule& schedule);

/// Every I that its W follows at once becomes B.
Schedule fuse_backward(const Schedule& schedule);

/// For the stages with a true entry, F keeps its input alone and an R comes right before B or I, in
/// front of the group if that is in one. A stage that recomputes already stays as it is.
Schedule with_recompute(const Schedule& schedule, std::vector<bool> stages);

/// Without A and O.
Schedule passes_only(const Schedule& schedule);

/// With all that a step needs: each stage gives its gradients away right after its last backward
/// pass and takes its new weights at the end of the lane, in the order of the giving. In a schedule
/// that updates amid the passes the O's stay, and an A stands right before each.
Schedule with_updates(const Schedule& schedule);

/// The asynchronous form: new weights after every `count` backward passes of a stage on a device,
/// and after the last. What the lanes had of A and O before is gone; the A's are added by
/// with_updates().
Schedule with_update_every(const Schedule& schedule, int count);

/// The same order with the first `count` micro-batches alone.
Schedule first_micro_batches(const Schedule& schedule, int count);

}  // namespace troupe::schedules
