#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "schedules/check/versions.h"
#include "schedules/schedule.h"

namespace troupe::schedules {

/// The rules of a valid schedule.
enum class Rule : std::uint8_t {
  placement,     // V1: every action is on the device of its route; all numbers are in range.
  completeness,  // V2: each stage and micro-batch has one F, and either one B or one I and one W.
  local_order,   // V3: F before R before B or I, I before W; weight gradients by micro-batch.
  acyclic,       // V4: no cycle of actions that wait for each other.
  step_order,    // V5: A after the gradients, O after A, each once; G before use, U after.
  memory,        // V6: kept activations fit the memory of each device.
  bounded_buffers,  // V7: no deadlock with this number of slots between two devices.
  streams,          // V8: no deadlock with these in-order streams.
  versions,         // V9: staleness and number of weight versions are as declared.
};

/// Prints a rule: "V4 acyclic".
std::string to_string(Rule rule);

/// One place at which a schedule breaks a rule.
struct Violation {
  Rule rule;
  int device;    // -1 if no single device is at fault, e.g. for a route that is too short.
  int position;  // Index in the lane; the lane's length if an action is missing.
  int length;    // The number of actions concerned, from `position` on.
  std::string reason;
};

/// The bytes that passes keep for each stage, and the memory of each device.
struct MemoryBudget {
  struct Stage {
    std::int64_t stash = 0;   // Kept from F to B or I.
    std::int64_t weight = 0;  // The part of `stash` that W needs, kept from I to W.
    std::int64_t input = 0;   // Kept from a checkpointed F to its R.
  };
  std::vector<Stage> stages;
  std::vector<std::int64_t> caps;  // One for each device.
};

/// The slots between two devices for each queue of tensors (by receiving stage and direction).
struct Buffers {
  int landing = 1;   // Slots for tensors that have arrived and are not consumed.
  int outgoing = 1;  // Slots for tensors that are computed and not yet sent.
};

/// The transfers that share one stream. A stream runs its transfers strictly in posting order.
/// Sends are posted after their pass, receives before their pass.
enum class Streams : std::uint8_t {
  per_device,
  per_peer,
  per_peer_and_direction,
  per_peer_direction_and_kind,
  per_queue,
};

/// Optional checks. V1 to V5 always run.
struct CheckRequest {
  std::optional<MemoryBudget> memory;
  std::optional<Buffers> buffers;
  std::optional<Streams> streams;
  std::optional<VersionLimits> versions;
};

/// Returns at most `max_violations` violations in the order of the rules. Without any, the schedule
/// completes for all durations. A rule that depends on a broken rule is skipped. Takes time linear
/// in the number of actions.
std::vector<Violation> check(const Schedule& schedule, const CheckRequest& request = {});

inline constexpr int max_violations = 100;

/// Rejects a valid schedule whose numbered O's do not end steps of `step_every` micro-batches each.
/// A schedule without numbered O's passes.
Status check_steps(const Schedule& schedule, int step_every);

/// Returns the fewest landing slots per queue with which a valid schedule cannot deadlock, given
/// the outgoing slots. If a queue is consumed out of order, returns the number of micro-batches.
int fewest_landing_slots(const Schedule& schedule, int outgoing);

/// Prints rule and reason, then the lane (shortened if it is long) with the place marked:
///
///     V3 local order: device 0 has 0B0 before 0F0, which it needs
///       d0: 0B0 0F0
///           ^~~
std::string render(const Schedule& schedule, const Violation& violation);

}  // namespace troupe::schedules
