#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "core/result.h"
#include "schedules/schedule.h"

namespace troupe::schedules {

/// The durations and sizes of the actions of one stage. All times of a simulation share one unit,
/// and so do all sizes.
struct StageCosts {
  double forward = 1;
  double backward = 2;
  double backward_input = 1;
  double backward_weight = 1;
  double recompute = 1;
  double reduce = 0;  // From A until the stage's gradients are summed over all replicas.
  double update = 0;
  double gather = 0;

  double activations = 1;         // Held from F to the end of the backward pass.
  double weight_activations = 1;  // The part of `activations` that W needs after I.
  double input_activations = 0;   // Held by a checkpointed F until its R.
  double boundary = 0;            // Sent by F to the next stage.
  double boundary_back = 0;       // Gradients that the next stage sends back.
};

/// A link between devices. A message arrives `latency + size / bandwidth` after it is sent.
struct Link {
  double latency = 0;
  double bandwidth = std::numeric_limits<double>::infinity();

  double time(double size) const { return latency + size / bandwidth; }
};

/// The costs of a pipeline. An empty vector means that all its entries are equal.
struct Costs {
  std::vector<StageCosts> stages;
  std::vector<double> slowness;          // Device d takes slowness[d] times as long; may be empty.
  Link link;                             // Between any two devices, unless
  std::vector<std::vector<Link>> links;  // links[from][to] overrides it; may be empty.
  double launch = 0;                     // Added to every action that occupies a device.
  double overlap = 0;     // Fraction of a group's other actions hidden behind its longest, 0 to 1.
  int landing_slots = 0;  // Limit of unused messages of one kind to a stage; 0: no limit.

  double slowness_of(std::size_t device) const { return slowness.empty() ? 1 : slowness[device]; }

  /// Returns the link between two different devices.
  const Link& between(std::size_t from, std::size_t to) const {
    return links.empty() ? link : links[from][to];
  }
  /// Returns the time from the end of an action until its message reaches the other device.
  double travel(std::size_t from, std::size_t to, double size) const {
    return from == to ? 0 : between(from, to).time(size);
  }
};

/// Returns costs with equal stages, `chunks` per device. `device` gives times and activations of a
/// device's whole share of the model; each stage gets an equal part.
Costs uniform_costs(int devices, int chunks, const StageCosts& device, const Link& link = {});

/// Checks that every number is usable and every vector has the schedule's size.
Status check_costs(const Costs& costs, int stages, int devices);

/// The activations that an action allocates at its start and frees at its end.
struct Stash {
  double taken = 0;
  double given = 0;
};
Stash stash_of(Action action, const StageCosts& stage);

/// Returns the duration of an action on its stage, on a device of slowness 1.
double time_of(Kind kind, const StageCosts& stage);

}  // namespace troupe::schedules
