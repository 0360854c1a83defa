#pragma once

#include <limits>
#include <string>
#include <vector>

#include "core/result.h"
#include "schedules/simulate/cost_model.h"

namespace troupe::schedules {

/// Whether a stage may begin with a unit.
enum class Cut : std::uint8_t { allowed, forbidden, required };

/// A unit as far as cutting goes.
struct Piece {
  Seconds work{};      // A micro-batch, forward and backward, on a device of speed 1.
  Bytes weights = 0;   // Held once for each copy of the weights,
  Bytes fixed = 0;     // once,
  Bytes stash = 0;     // and once for each micro-batch in flight.
  Bytes passing = 0;   // While a pass runs: of all pieces on a device, the largest counts.
  Bytes boundary = 0;  // What a cut before it sends, each way.
  Bytes reduced = 0;   // Gradients that replicas of the stage must sum.
  Cut cut = Cut::allowed;
};

/// Two pieces that share parameters: the second holds `bytes` more unless the first is on the same
/// device.
struct Tie {
  int first = 0;
  int second = 0;
  Bytes bytes = 0;
};

/// The model: units in the order in which a micro-batch passes them.
struct Chain {
  std::vector<Piece> pieces;
  std::vector<Tie> ties;
};

/// A device as far as cutting goes.
struct Capacity {
  static constexpr Bytes unlimited = std::numeric_limits<Bytes>::max();

  double speed = 1;
  Bytes memory = unlimited;
};

/// Where a stage sits, and what its place in the schedule makes it hold.
struct Seat {
  int device = 0;
  int in_flight = 1;  // Micro-batches whose stash it holds at once.
  int copies = 1;     // Versions of its weights.
  Link next;          // To the stage after it.
};

/// Whether transfers run beside the passes, and so only bound the rate, or the stage waits for
/// them.
enum class Hops { hidden, exposed };

struct PartitionProblem {
  Chain chain;
  std::vector<Capacity> devices;
  std::vector<Seat> seats;  // One for each stage; several may share a device.
  Hops hops = Hops::hidden;
};

/// Stage k holds the units from cuts[k] up to cuts[k + 1].
struct Partition {
  std::vector<int> cuts;
  Seconds bottleneck{};  // The time that the busiest device or link needs for a micro-batch.

  friend bool operator==(const Partition&, const Partition&) = default;
};

/// Everything that can be wrong with a problem, want of memory aside.
Status check_partition(const PartitionProblem& problem);

/// Cuts the chain so that the busiest device has as little to do as possible, no stage is empty and
/// no device holds more than its memory.
///
/// The answer is exact where every device has one seat: parametric search, whose probe lets each
/// device take all that it can (Hops::hidden), or follows all cuts that can be reached. It is exact
/// for a V, 0 1 .. P-1 P-1 .. 1 0, with hidden hops, up to some hundred units: it follows the pairs
/// of a prefix and a suffix that can be reached. (There, a tie counts as two copies unless it is
/// between the first unit and the last, and `passing` may hide a cut that is barely small enough.)
/// Other placements start from stages that are balanced, and move borders while that helps. Of cuts
/// that are equally good, more even stages are preferred.
///
/// An error says why nothing fits: the stage, what it needs and what there is.
Result<Partition> partition(const PartitionProblem& problem);

/// Bytes that each device holds under these cuts, and the time that each needs for a micro-batch,
/// exposed hops included.
std::vector<Bytes> held_memory(const PartitionProblem& problem, const std::vector<int>& cuts);
std::vector<Seconds> busy_times(const PartitionProblem& problem, const std::vector<int>& cuts);

/// What keeps a model from fitting, at the cuts that come closest.
struct Misfit {
  int device = 0;
  int first = 0;  // The units of that device's fullest stage: from first up to last.
  int last = 0;
  int stage = 0;
  Bytes needed = 0;
  Bytes available = 0;
  std::vector<int> cuts;
};

/// Only for a problem that passes check_partition() and does not fit.
Misfit closest_misfit(const PartitionProblem& problem);

}  // namespace troupe::schedules
