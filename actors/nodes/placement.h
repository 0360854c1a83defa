#pragma once

#include <tuple>
#include <vector>

#include "actors/player_id.h"
#include "actors/run_spec.h"
#include "transport/wire/fields.h"

namespace troupe::actors {

/// The assignment of a run's players to its processes. Processes are numbered; the last one is the
/// head's, which has the supervisor.
struct Placement {
  int processes = 1;
  std::vector<int> stages;      // Indexed by replica, then device.
  std::vector<int> optimizers;  // Indexed by stage, then section.
  std::vector<int> inputs;      // Indexed by replica.
  std::vector<int> targets;     // Indexed by replica.

  int head() const { return processes - 1; }
  int process_of(PlayerId player) const;

  static constexpr auto fields() {
    return std::tuple(transport::required("processes", &Placement::processes).at_least(1),
                      transport::required("stages", &Placement::stages).at_least(0),
                      transport::required("optimizers", &Placement::optimizers).at_least(0),
                      transport::required("inputs", &Placement::inputs).at_least(0),
                      transport::required("targets", &Placement::targets).at_least(0));
  }
};

/// Places all players, given the node of each device (by replica, then device). An optimizer goes
/// to a node with its stage, and a loader to the stage it feeds. Changes no result.
Placement place(const RunSpec& spec, std::vector<int> nodes_of_devices, int nodes);

/// Checks that a placement from another process fits the run.
Status check(const Placement& placement, const RunSpec& spec);

}  // namespace troupe::actors
