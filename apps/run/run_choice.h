#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "actors/nodes/node_pool.h"
#include "apps/run/run_setup.h"
#include "config/load.h"
#include "core/result.h"
#include "schedules/plan/plan.h"
#include "storage/files/files.h"
#include "transport/wire/fields.h"

namespace troupe::apps {

/// What a head chooses for a run by the nodes that are there, where the configuration leaves it
/// open. The run keeps its precision for its whole life; the plan may change with the nodes.
struct RunChoice {
  static constexpr std::string_view type = "run.chosen";

  std::string precision;  // In which it computes.
  std::string why;        // That, for a person; with the names of those who lack a better one.
  /// Where its stages are cut, so that a node with half the cores has about half the work. Empty
  /// for an asynchronous run: there the cuts are part of the numbers, and hang on no node.
  std::vector<int> stages;
  int chunks = 1;
  int replicas = 1;
  std::string schedule;

  static constexpr auto fields() {
    return std::tuple(transport::required("precision", &RunChoice::precision),
                      transport::required("why", &RunChoice::why),
                      transport::required("stages", &RunChoice::stages).at_least(0),
                      transport::required("chunks", &RunChoice::chunks).at_least(1),
                      transport::required("replicas", &RunChoice::replicas).at_least(1),
                      transport::required("schedule", &RunChoice::schedule));
  }
  bool has_plan_of(const RunChoice& other) const {
    return stages == other.stages && chunks == other.chunks && replicas == other.replicas &&
           schedule == other.schedule;
  }
};

/// A configuration on nodes that are there, and what is chosen by them.
struct LivePlan {
  RunChoice choice;
  schedules::PlanRequest request;
  schedules::Plan plan;
};

/// For at least one node. `setup`, of the same configuration, gets the precision that is chosen:
/// the best that as many nodes have as the run takes; where there are fewer, the best that all
/// have. Nodes without it are not planned for, nor are more than the run may have.
Result<LivePlan> plan_for(const config::RunConfig& config, RunSetup& setup,
                          std::vector<actors::NodeHere> nodes);

/// Nodes as a planner sees them, when the devices of a configuration share them out: each has an
/// equal part of its node's cores and memory, or of the memory of GPUs, as far as its node has told
/// of them.
schedules::Cluster cluster_of(const config::RunConfig& config,
                              const std::vector<actors::NodeHere>& nodes);

/// Puts it in the place of what was open.
void take(const RunChoice& choice, config::Loaded& loaded);

/// A run that is resumed computes in what it did: where its configuration leaves that open, its
/// newest checkpoint says.
Status take_precision(storage::Files& files, config::Loaded& loaded);

}  // namespace troupe::apps
