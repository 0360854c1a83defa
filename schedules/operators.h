#pragma once

#include <vector>

#include "schedules/schedule.h"

/// Operators that derive one schedule from another. Each takes a valid schedule and returns one.
namespace troupe::schedules {

/// Replaces every B by I and W.
Schedule split_backward(const Schedule& schedule);

/// Replaces every I that its W follows immediately by B.
Schedule fuse_backward(const Schedule& schedule);

/// Adds recomputation to the stages set in `stages`: F keeps only the input, and an R comes right
/// before B or I (or before their group). Skips stages that already recompute.
Schedule with_recompute(const Schedule& schedule, std::vector<bool> stages);

/// Removes all A and O.
Schedule passes_only(const Schedule& schedule);

/// Adds the A and O that a step needs: A right after a stage's last backward pass, all O's at the
/// end of the lane in the order of the A's. If the schedule updates between passes, its O's stay
/// and an A is inserted right before each.
Schedule with_updates(const Schedule& schedule);

/// Makes the schedule asynchronous: a stage updates its weights after every `count` backward passes
/// on a device, and after the last one. Removes all A and O that the lanes had before. Call
/// with_updates() afterwards to add the A's.
Schedule with_update_every(const Schedule& schedule, int count);

/// Keeps only the first `count` micro-batches, in their old order.
Schedule first_micro_batches(const Schedule& schedule, int count);

}  // namespace troupe::schedules
