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

/// Checks of messages from other processes. Such a message is well formed, but its numbers are
/// untrusted, so may() is called before anything else uses it. It checks that the sender has the
/// player for which the message speaks, that the receiver takes such messages, and that every
/// number used as an index, a size or a time is in range. Course::expects() checks what also
/// depends on the moment (a round that is not in flight, a repeated report).
namespace troupe::actors {

/// The numbers of a run that limit its messages.
struct RunBounds {
  int replicas = 1;
  int devices = 1;  // Per replica.
  int stages = 1;
  int sections = 1;  // Per stage.
  int optimizers = 1;
  int micro_batches = 1;                  // Per step, over all replicas.
  int evaluated = 0;                      // Micro-batches of an evaluation.
  std::vector<std::vector<int>> holders;  // Places of each stage's holders among all devices.

  static RunBounds of(const RunSpec& spec);
};

/// The sender and the receiver of a message.
struct Sender {
  int process = 0;
  PlayerId to;
  const Placement& placement;
  const RunBounds& bounds;
};

/// Returns whether a run with this placement has the player.
bool has_player(const Placement& placement, PlayerId player);

// Orders of the head to players.
Status may(const Sender& from, const Play& message);
Status may(const Sender& from, const TakeSnapshot& message);
Status may(const Sender& from, const KeepStep& message);

// Messages between players.
Status may(const Sender& from, const Activation& message);
Status may(const Sender& from, const Targets& message);
Status may(const Sender& from, const Gradient& message);
Status may(const Sender& from, const LoanFor& message);
Status may(const Sender& from, const Taken& message);
Status may(const Sender& from, const StepGradients& message);
Status may(const Sender& from, const Norms& message);
Status may(const Sender& from, const NewWeights& message);
Status may(const Sender& from, const StateCopy& message);

// Reports to the supervisor.
Status may(const Sender& from, const Divergence& message);
Status may(const Sender& from, const StepDone& message);
Status may(const Sender& from, const LateGradients& message);
Status may(const Sender& from, const MicroBatchLoss& message);
Status may(const Sender& from, const RoundPlayed& message);
Status may(const Sender& from, const Pulse& message);
Status may(const Sender& from, const Snapshot& message);
Status may(const Sender& from, const Kept& message);

}  // namespace troupe::actors
