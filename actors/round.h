#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "models/train/gradient_fold.h"
#include "models/train/shared_parameters.h"
#include "models/train/stage.h"
#include "schedules/schedule.h"

namespace troupe::actors {

/// The work between two moments at which nothing is in flight: one step of a synchronous schedule,
/// or the steps of an asynchronous one before it drains. Every replica plays the same lanes on its
/// own micro-batches.
struct Round {
  enum class Purpose : std::uint8_t { training, evaluation };

  Purpose purpose = Purpose::training;
  schedules::Schedule schedule;  // The schedule of one replica.
  int replicas = 1;
  int steps = 1;       // The number of optimizer steps.
  int step_every = 1;  // Micro-batches of one replica per step.
  int groups = 1;      // Reduction groups of a step, over all replicas.

  int devices() const { return schedule.devices(); }
  int micro_batches_in_step() const { return step_every * replicas; }
};
using RoundPtr = std::shared_ptr<const Round>;

/// The micro-batch that a lane's number denotes.
struct MicroBatchPlace {
  int step = 0;   // In the round.
  int index = 0;  // In the step, over all replicas; consecutive for each holder of a stage.
};
MicroBatchPlace place_of(const Round& round, int replica, int m);

/// Returns a title for the step of a micro-batch, like "step 3" or "evaluation after step 3".
/// `first_step` is the round's, counted from 0.
std::string step_title(const Round& round, std::int64_t first_step, int m);

/// A device of a replica that holds a stage. With two directions a replica has two holders of a
/// stage, each for the micro-batches of one route.
struct Holder {
  int replica = 0;
  int device = 0;  // Within the replica.
  models::Share share;
};
/// Returns the holders of a stage in the order of their micro-batches.
std::vector<Holder> holders_of(const Round& round, int stage);

/// Checks that every holder has whole reduction groups, so that a step's sums do not depend on who
/// holds what. The error names the numbers that do not fit.
Status check_shares(const Round& round);

/// Returns, by micro-batch, the steps of a stage between the forward and backward pass on this
/// device, or -1 for micro-batches that pass elsewhere.
std::vector<int> delays_of(const schedules::Lane& lane, int stage, int micro_batches);

/// Returns for each device of a replica the most parcels that its inbox can hold, in whatever order
/// senders run: the inputs and targets that loaders have credit for, and what all devices can have
/// produced while it stands at the worst place of its lane. `rounds` are played in sequence; the
/// last one only bounds how far other devices can be ahead.
std::vector<std::size_t> most_parcels(std::span<const RoundPtr> rounds, int loader_credit,
                                      std::span<const models::SharedParameter> shared);

/// Returns a round of forward passes only, in order, over the first route of one replica.
RoundPtr evaluation_round(const Round& training, int micro_batches);

}  // namespace troupe::actors
