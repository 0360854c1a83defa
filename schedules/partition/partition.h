#pragma once

#include <limits>
#include <string>
#include <vector>

#include "core/result.h"
#include "schedules/simulate/cost_model.h"

namespace troupe::schedules {

/// Whether a stage may begin with a unit.
enum class Cut : std::uint8_t { allowed, forbidden, required };

/// The costs of one unit that matter for cutting.
struct Piece {
  Seconds work{};      // Forward and backward of one micro-batch on a device of speed 1.
  Bytes weights = 0;   // Held once for each copy of the weights.
  Bytes fixed = 0;     // Held once.
  Bytes stash = 0;     // Held for each micro-batch in flight.
  Bytes passing = 0;   // Held while a pass runs; a device needs the largest of its pieces.
  Bytes boundary = 0;  // Sent each way if a cut is before this piece.
  Bytes reduced = 0;   // Gradients that replicas of the stage must sum.
  Cut cut = Cut::allowed;
};

/// Two pieces that share parameters. The second holds `bytes` more unless both are on one device.
struct Tie {
  int first = 0;
  int second = 0;
  Bytes bytes = 0;
};

/// The model as units in forward order.
struct Chain {
  std::vector<Piece> pieces;
  std::vector<Tie> ties;
};

/// The speed and memory of a device.
struct Capacity {
  static constexpr Bytes unlimited = std::numeric_limits<Bytes>::max();

  double speed = 1;
  Bytes memory = unlimited;
};

/// The device of a stage, and the copies that the schedule makes the stage hold.
struct Seat {
  int device = 0;
  int in_flight = 1;  // Micro-batches whose stash it holds at once.
  int copies = 1;     // Versions of its weights.
  Link next;          // To the next stage.
};

/// Whether transfers run in parallel to the passes and only bound the rate (hidden), or the stage
/// waits for them (exposed).
enum class Hops { hidden, exposed };

struct PartitionProblem {
  Chain chain;
  std::vector<Capacity> devices;
  std::vector<Seat> seats;  // One for each stage; several may share a device.
  Hops hops = Hops::hidden;
};

/// The cuts of a model. Stage k holds the units from cuts[k] up to cuts[k + 1].
struct Partition {
  std::vector<int> cuts;
  Seconds bottleneck{};  // Time per micro-batch of the busiest device or link.

  friend bool operator==(const Partition&, const Partition&) = default;
};

/// Checks everything about a problem except whether it fits the memory.
Status check_partition(const PartitionProblem& problem);

/// Cuts the chain to minimize the load of the busiest device. No stage is empty and no device
/// exceeds its memory.
///
/// The result is exact if every device has one seat: a parametric search, whose probe fills each
/// device greedily (Hops::hidden) or follows all reachable cuts. It is also exact for a V, 0 1 ..
/// P-1 P-1 .. 1 0, with hidden hops, up to some hundred units: it follows the reachable pairs of a
/// prefix and a suffix. (For a V, a tie counts as two copies unless it joins the first and the last
/// unit, and `passing` may hide a cut that barely fits.) Other placements start from balanced
/// stages and move borders while that helps. Among equally good cuts it prefers even stages.
///
/// An error names the stage that does not fit, the bytes it needs and the bytes available.
Result<Partition> partition(const PartitionProblem& problem);

/// Return the bytes that each device holds under these cuts, and its time per micro-batch including
/// exposed hops.
std::vector<Bytes> held_memory(const PartitionProblem& problem, const std::vector<int>& cuts);
std::vector<Seconds> busy_times(const PartitionProblem& problem, const std::vector<int>& cuts);

/// The reason why a model does not fit, at the cuts that come closest.
struct Misfit {
  int device = 0;
  int first = 0;  // The units of that device's fullest stage: from first up to last.
  int last = 0;
  int stage = 0;
  Bytes needed = 0;
  Bytes available = 0;
  std::vector<int> cuts;
};

/// Finds the closest cuts. Call it only if check_partition() passes and partition() fails.
Misfit closest_misfit(const PartitionProblem& problem);

}  // namespace troupe::schedules
