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

/// The head's choices for a run, made for the present nodes where the configuration leaves them
/// open. A run keeps its precision for its whole life; its plan may change with the nodes.
struct RunChoice {
  static constexpr std::string_view type = "run.chosen";

  std::string precision;  // The precision in which the run computes.
  std::string why;        // The reason, with the names of nodes that lack a better precision.
  /// The cuts of the stages, proportional to the speed of nodes: a node with half the cores has
  /// about half the work. Empty for an asynchronous run, whose cuts affect its numbers and must not
  /// depend on nodes.
  std::vector<int> stages;
  int chunks = 1;
  int replicas = 1;
  std::string schedule;
  std::string plan_why = {};  // Why this plan was chosen, with the times of others.

  static constexpr auto fields() {
    return std::tuple(transport::required("precision", &RunChoice::precision),
                      transport::required("why", &RunChoice::why),
                      transport::required("stages", &RunChoice::stages).at_least(0),
                      transport::required("chunks", &RunChoice::chunks).at_least(1),
                      transport::required("replicas", &RunChoice::replicas).at_least(1),
                      transport::required("schedule", &RunChoice::schedule),
                      transport::optional("plan_why", &RunChoice::plan_why));
  }
  /// Returns a name that only equal plans share.
  std::string plan_name() const;
  bool has_plan_of(const RunChoice& other) const {
    return stages == other.stages && chunks == other.chunks && replicas == other.replicas &&
           schedule == other.schedule;
  }
};

/// The plan of a configuration on the present nodes, and the choices made for it.
struct LivePlan {
  RunChoice choice;
  schedules::PlanRequest request;
  schedules::Plan plan;
  std::vector<schedules::Plan> candidates;  // All plans that were compared.
};

/// Returns the choices that make a run use this plan.
RunChoice choice_of(const config::RunConfig& config, const schedules::Plan& plan);

/// Returns the seconds of a step in which the busiest device of the plan computes.
double computing_of(const schedules::PlanRequest& request, const schedules::Plan& plan);

/// Explains a plan by the times of the best plan of each other layout.
std::string explain_choice(const schedules::Plan& plan,
                           const std::vector<schedules::Plan>& candidates);

/// Plans for at least one node. `setup`, made from the same configuration, receives the chosen
/// precision: the best that as many nodes support as the run takes, or if there are fewer nodes,
/// the best that all support. Skips nodes that lack the precision, and nodes beyond the run's
/// limit. `slowness`: how many times longer passes take than the planner expects. `setup` also
/// receives the times of the units by `measure`, unless it is null.
Result<LivePlan> plan_for(const config::RunConfig& config, RunSetup& setup,
                          std::vector<actors::NodeHere> nodes, double slowness = 1,
                          std::vector<UnitTimes> (*measure)(const MeasuredModel&) = nullptr);

/// Returns the nodes as the planner sees them. The devices of a configuration divide the nodes;
/// each device has an equal part of its node's cores and memory, or of its GPUs' memory if the node
/// has reported it. Measured speeds, in this precision, and measured links replace assumptions.
schedules::Cluster cluster_of(const config::RunConfig& config,
                              const std::vector<actors::NodeHere>& nodes,
                              kernels::Precision precision = kernels::Precision::fp32,
                              double slowness = 1);

/// Returns the request to plan a run for these nodes. `slowness`: see plan_for().
Result<schedules::PlanRequest> live_request(const config::RunConfig& config, const RunSetup& setup,
                                            const std::vector<actors::NodeHere>& nodes,
                                            double slowness);

/// Fills the choices into the open settings of a configuration.
void take(const RunChoice& choice, config::Loaded& loaded);

/// Sets the precision of a resumed run to that of its newest checkpoint, if the configuration
/// leaves it open.
Status take_precision(storage::Files& files, config::Loaded& loaded);

}  // namespace troupe::apps
