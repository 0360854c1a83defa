#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "core/result.h"
#include "schedules/schedule.h"

namespace troupe::schedules {

/// What the actions on one stage take and hold. All times of a simulation are in one unit, seconds
/// or another, and so are all sizes.
struct StageCosts {
  double forward = 1;
  double backward = 2;
  double backward_input = 1;
  double backward_weight = 1;
  double recompute = 1;
  double reduce = 0;  // From A until the stage's gradients are summed over all who hold it.
  double update = 0;
  double gather = 0;

  double activations = 1;         // Held from F until the backward pass has ended.
  double weight_activations = 1;  // What of them W still needs when I has ended.
  double input_activations = 0;   // What a checkpointed F holds until its R.
  double boundary = 0;            // What F sends to the next stage; the gradient is as large.
};

/// A way from one device to another: a message arrives `latency + size / bandwidth` after it left.
struct Link {
  double latency = 0;
  double bandwidth = std::numeric_limits<double>::infinity();

  double time(double size) const { return latency + size / bandwidth; }
};

/// What a simulation is told about a pipeline. Vectors that may be empty stand for "all the same".
struct Costs {
  std::vector<StageCosts> stages;
  std::vector<double> slowness;          // Device d takes slowness[d] times as long; may be empty.
  Link link;                             // Between any two devices, unless
  std::vector<std::vector<Link>> links;  // links[from][to] says otherwise; may be empty.
  double launch = 0;                     // Added to every action that occupies a device.
  double overlap = 0;     // How much of a group's other actions hides behind its longest: 0 to 1.
  int landing_slots = 0;  // For messages of a kind to a stage, under way or waiting; 0: no bound.

  double slowness_of(std::size_t device) const { return slowness.empty() ? 1 : slowness[device]; }

  /// From the end of an action on one device until its message is on another; none within one.
  double travel(std::size_t from, std::size_t to, double size) const {
    if (from == to) return 0;
    return (links.empty() ? link : links[from][to]).time(size);
  }
};

/// Every stage alike, `chunks` of them on a device: the given times and activations are those of a
/// device's whole share of the model, and each stage has its part of it.
Costs uniform_costs(int devices, int chunks, const StageCosts& device, const Link& link = {});

/// Whether every number is one that a simulation can work with and every vector fits the schedule.
Status check_costs(const Costs& costs, int stages, int devices);

/// What is held while an action runs, and what is let go when it ends.
struct Stash {
  double taken = 0;
  double given = 0;
};
Stash stash_of(Action action, const StageCosts& stage);

/// What an action takes on its stage, on a device of slowness 1.
double time_of(Kind kind, const StageCosts& stage);

}  // namespace troupe::schedules
