#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "actors/nodes/placement.h"
#include "actors/player_id.h"
#include "actors/run_spec.h"
#include "core/result.h"

/// The gate of meaning. A message that came from another process is well formed when it gets here,
/// but its numbers are still a stranger's. `may()` is asked before anything reacts to the message.
/// It checks that the sender has the player that the message speaks for, that the receiver takes
/// such messages, and that every number which is used as an index, a size or a time has its bounds.
/// What also depends on the moment (a round that is not out, the same report twice) is checked by
/// Course::expects().
namespace troupe::actors {

/// The numbers of a run that bound what its messages may say.
struct RunBounds {
  int replicas = 1;
  int devices = 1;  // In a replica.
  int stages = 1;
  int sections = 1;  // In a stage.
  int optimizers = 1;
  int micro_batches = 1;                  // In a step, over all replicas.
  int evaluated = 0;                      // Micro-batches of an evaluation.
  std::vector<std::vector<int>> holders;  // By stage: their places among all devices.

  static RunBounds of(const RunSpec& spec);
};

/// Who sent a message, and to whom.
struct Sender {
  int process = 0;
  PlayerId to;
  const Placement& placement;
  const RunBounds& bounds;
};

/// Whether a run with this placement has the player.
bool has_player(const Placement& placement, PlayerId player);

// To players, from the head.
Status may(const Sender& from, const Play& message);
Status may(const Sender& from, const TakeSnapshot& message);
Status may(const Sender& from, const KeepStep& message);

// To players, from other players.
Status may(const Sender& from, const Activation& message);
Status may(const Sender& from, const Targets& message);
Status may(const Sender& from, const Gradient& message);
Status may(const Sender& from, const LoanFor& message);
Status may(const Sender& from, const Taken& message);
Status may(const Sender& from, const StepGradients& message);
Status may(const Sender& from, const Norms& message);
Status may(const Sender& from, const NewWeights& message);
Status may(const Sender& from, const StateCopy& message);

// To the supervisor.
Status may(const Sender& from, const Divergence& message);
Status may(const Sender& from, const StepDone& message);
Status may(const Sender& from, const LateGradients& message);
Status may(const Sender& from, const MicroBatchLoss& message);
Status may(const Sender& from, const RoundPlayed& message);
Status may(const Sender& from, const Pulse& message);
Status may(const Sender& from, const Snapshot& message);
Status may(const Sender& from, const Kept& message);

}  // namespace troupe::actors
