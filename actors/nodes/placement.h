#pragma once

#include <tuple>
#include <vector>

#include "actors/player_id.h"
#include "actors/run_spec.h"
#include "transport/wire/fields.h"

namespace troupe::actors {

/// Which process of a run has which of its players. Processes are numbered; the last one is the
/// head's, which has the supervisor.
struct Placement {
  int processes = 1;
  std::vector<int> stages;      // By replica, then device.
  std::vector<int> optimizers;  // By stage, then section.
  std::vector<int> inputs;      // By replica.
  std::vector<int> targets;     // Likewise.

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

/// Where its devices are given, by replica, then device: an optimizer goes to one that has its
/// stage, and loaders to those that they feed. Changes no bit of a result.
Placement place(const RunSpec& spec, std::vector<int> nodes_of_devices, int nodes);

/// Whether what came from elsewhere fits the run.
Status check(const Placement& placement, const RunSpec& spec);

}  // namespace troupe::actors
