#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "schedules/check/versions.h"
#include "schedules/schedule.h"

namespace troupe::schedules {

/// What a schedule must obey.
enum class Rule : std::uint8_t {
  placement,        // V1: every action is on the device of its route, and its numbers are in range.
  completeness,     // V2: each stage and micro-batch has one F, and one B or one I and one W.
  local_order,      // V3: F before R before B or I, I before W; W's and B's by micro-batch.
  acyclic,          // V4: no circle of actions of which each waits for the next.
  step_order,       // V5: A after the gradients, O after A, each once; G before use, U after.
  memory,           // V6: what is kept never exceeds what there is.
  bounded_buffers,  // V7: with this few slots between two devices nothing gets stuck.
  streams,          // V8: nor with these in-order streams.
  versions,         // V9: weights are as fresh and as few as declared.
};

/// "V4 acyclic"
std::string to_string(Rule rule);

/// One place where a schedule breaks a rule.
struct Violation {
  Rule rule;
  int device;    // -1 where no device is at fault, such as for a route that is too short.
  int position;  // In the lane; its length where something is missing.
  int length;    // How many actions from there on are meant.
  std::string reason;
};

/// What passes keep, in bytes, stage by stage, and what the devices have.
struct MemoryBudget {
  struct Stage {
    std::int64_t stash = 0;   // Kept from F to B, or to I.
    std::int64_t weight = 0;  // The part of it that W needs, kept from I to W.
    std::int64_t input = 0;   // Kept from a checkpointed F to its R.
  };
  std::vector<Stage> stages;
  std::vector<std::int64_t> caps;  // One for each device.
};

/// The room between two devices, for each queue of tensors (receiving stage and direction).
struct Buffers {
  int landing = 1;   // Tensors that have come and are not consumed.
  int outgoing = 1;  // Tensors made and not yet gone.
};

/// What shares one stream, in which transfers are done strictly in the order of their posting: a
/// send after its pass, a receive before its pass.
enum class Streams : std::uint8_t {
  per_device,
  per_peer,
  per_peer_and_direction,
  per_peer_direction_and_kind,
  per_queue,
};

/// What is checked beside V1 to V5, which always are.
struct CheckRequest {
  std::optional<MemoryBudget> memory;
  std::optional<Buffers> buffers;
  std::optional<Streams> streams;
  std::optional<VersionLimits> versions;
};

/// All that is wrong, at most `max_violations`, in the order of the rules; nothing if the schedule
/// is valid: then it plays to its end whatever the times are. Rules that build on others are left
/// out while those are broken. Takes time linear in the number of actions.
std::vector<Violation> check(const Schedule& schedule, const CheckRequest& request = {});

inline constexpr int max_violations = 100;

/// Rejects a valid schedule whose numbered O's do not end steps of `step_every` micro-batches each.
/// A schedule without numbered O's passes.
Status check_steps(const Schedule& schedule, int step_every);

/// The fewest landing slots per queue with which a valid schedule cannot get stuck, given so many
/// outgoing slots. One for each micro-batch if a queue is not used in the order of its making.
int fewest_landing_slots(const Schedule& schedule, int outgoing);

/// Rule and reason, then the lane (what is near, if it is long) with the place marked:
///
///     V3 local order: device 0 has 0B0 before 0F0, which it needs
///       d0: 0B0 0F0
///           ^~~
std::string render(const Schedule& schedule, const Violation& violation);

}  // namespace troupe::schedules
