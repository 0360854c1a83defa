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

/// What is played between two moments at which nothing is in flight: one step of a synchronous
/// schedule, or as many steps as an asynchronous one takes before it drains. Every replica plays
/// the same lanes on micro-batches of its own.
struct Round {
  enum class Purpose : std::uint8_t { training, evaluation };

  Purpose purpose = Purpose::training;
  schedules::Schedule schedule;  // Of one replica.
  int replicas = 1;
  int steps = 1;       // Optimizer steps in it.
  int step_every = 1;  // Micro-batches of one replica in a step.
  int groups = 1;      // Reduction groups of a step, of all replicas together.

  int devices() const { return schedule.devices(); }
  int micro_batches_in_step() const { return step_every * replicas; }
};
using RoundPtr = std::shared_ptr<const Round>;

/// Which micro-batch of the whole batch a number in a lane means.
struct MicroBatchPlace {
  int step = 0;   // Of the round.
  int index = 0;  // In the step, over all replicas: consecutive ones for each holder of a stage.
};
MicroBatchPlace place_of(const Round& round, int replica, int m);

/// "step 3", or "evaluation after step 3": where a micro-batch of a round's lanes belongs, for a
/// person. `first_step` is the round's, counted from 0.
std::string step_title(const Round& round, std::int64_t first_step, int m);

/// A holder of a stage is a device of a replica. With two directions a replica has two holders of a
/// stage, each for the micro-batches of one route. In the order of their micro-batches:
struct Holder {
  int replica = 0;
  int device = 0;  // Of the replica.
  models::Share share;
};
std::vector<Holder> holders_of(const Round& round, int stage);

/// Whether every holder's micro-batches are whole reduction groups, so that the sum over a step
/// does not depend on who holds what. The error says which numbers do not go together.
Status check_shares(const Round& round);

/// Steps of a stage between the forward and the backward pass of each micro-batch on this device;
/// -1 for those that pass elsewhere.
std::vector<int> delays_of(const schedules::Lane& lane, int stage, int micro_batches);

/// For each device of a replica the most parcels that can lie there at once, whatever order their
/// senders run in: inputs and targets that its loaders have credit for, and what the other devices
/// and its own passes can have made while it stands at the worst place of its lane. `rounds` are
/// played one after another; the last one only as what others may be ahead in.
std::vector<std::size_t> most_parcels(std::span<const RoundPtr> rounds, int loader_credit,
                                      std::span<const models::SharedParameter> shared);

/// Forward passes alone, in order, over the first route of one replica.
RoundPtr evaluation_round(const Round& training, int micro_batches);

}  // namespace troupe::actors
