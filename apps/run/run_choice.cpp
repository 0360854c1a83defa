#include "apps/run/run_choice.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "apps/machine/this_machine.h"
#include "apps/run/plan_request.h"
#include "config/schema.h"
#include "core/units.h"
#include "schedules/plan/plan_format.h"
#include "storage/checkpoint/checkpoint.h"

namespace troupe::apps {
namespace {

namespace sched = troupe::schedules;

using Compute = config::RunConfig::Precision::Compute;
using kernels::Precision;

constexpr std::string_view precision_key = "precision.compute";
/// The assumed link between hosts whose network is unknown.
constexpr sched::Link usual_network{.latency = 50e-6, .bandwidth = 1.25e9};
// The planner's limits for a device's speed.
constexpr double least_speed = 1e-3;
constexpr double most_speed = 1000;

/// Returns the best precision that `count` of the nodes support.
Precision best_of(const std::vector<actors::NodeHere>& nodes, int count) {
  std::vector<Precision> all(nodes.size());
  std::ranges::transform(nodes, all.begin(), [](const actors::NodeHere& node) {
    return actors::precision_named(node.inventory.precision);
  });
  std::ranges::sort(all, std::greater<>());
  return all[static_cast<std::size_t>(std::clamp(count, 1, static_cast<int>(all.size())) - 1)];
}

/// Returns how many nodes take part at once.
int nodes_taken(const config::RunConfig& config, const std::vector<actors::NodeHere>& nodes) {
  const int most = std::min(config.elastic.nodes.most, static_cast<int>(nodes.size()));
  if (!config.pipeline.stages.count) return most;
  return std::clamp(devices_wanted(config), std::min(config.elastic.nodes.fewest, most), most);
}

std::string reason_for(Precision chosen, const std::vector<actors::NodeHere>& nodes) {
  const auto best = best_of(nodes, 1);
  const std::string name(to_string(chosen));
  if (const auto without = actors::who_lacks(chosen, nodes); !without.empty())
    return name + ", the fastest that enough nodes support; " + without + ", and is not used";
  if (chosen == best) return name + ", the fastest that all nodes support";
  return name + ", the fastest that all nodes support; " + actors::who_lacks(best, nodes);
}

/// Returns whether the name stands for several precisions, of which the devices' abilities select
/// one.
bool is_family(Compute compute) { return compute == Compute::fp16 || compute == Compute::bf16; }
bool is_of(Compute family, Precision precision) {
  return family == Compute::fp16 ? kernels::is_fp16(precision) : kernels::is_bf16(precision);
}

Result<Precision> choose_precision(const config::RunConfig& config, int count,
                                   const std::vector<actors::NodeHere>& nodes,
                                   std::string& reason) {
  const auto& wanted = config.precision;
  // A node whose GPUs lack this precision reports that itself.
  if (is_on_gpus(config) && !wanted.compute) {
    reason = std::string(to_string(Precision::bf16_gpu)) + ", since all devices are GPUs";
    return Precision::bf16_gpu;
  }
  if (!wanted.compute) {
    const auto chosen = best_of(nodes, count);
    reason = reason_for(chosen, nodes);
    return chosen;
  }
  if (*wanted.compute == Compute::bf16 && !is_on_gpus(config)) {
    const auto chosen =
        std::max(Precision::bf16_pairs, best_of(nodes, static_cast<int>(nodes.size())));
    reason = std::string(to_string(chosen)) + ", the order of bf16 for these nodes";
    return chosen;
  }
  auto named = precision_of(config);
  if (named) {
    reason = std::string(to_string(*named));
    if (is_family(*wanted.compute) && is_on_gpus(config)) reason += ", since all devices are GPUs";
  }
  return named;
}

void set_precision(config::Loaded& loaded, std::string_view name) {
  config::set_at(loaded.tree, precision_key, std::string(name));
  loaded.config.precision.compute = config::read_run_config(loaded.tree).precision.compute;
}

// Memory that CUDA and the workspaces of its libraries take on a GPU per process; an estimate.
constexpr sched::Bytes taken_by_cuda = sched::Bytes{1} << 30;

/// Returns the memory that runs can use of each GPU that the node reported. All nodes of a host
/// share it. If the node reported no GPU, the memory is unknown.
std::vector<sched::Bytes> memory_of_gpus(const actors::NodeHere& node,
                                         const std::vector<actors::NodeHere>& nodes) {
  const auto on_host = std::ranges::count_if(
      nodes, [&](const auto& other) { return other.inventory.host == node.inventory.host; });
  std::vector<sched::Bytes> gpus;
  for (const auto& gpu : node.gpus)
    if (gpu.memory)
      gpus.push_back(std::max<sched::Bytes>(0, *gpu.memory / on_host - taken_by_cuda));
  if (gpus.empty()) gpus.push_back(sched::unknown_memory);
  return gpus;
}

/// Returns the measured rate of a core of the node in this precision; nothing if unknown.
std::optional<double> core_rate(const actors::NodeHere& node, kernels::Precision precision) {
  const auto& speed = node.inventory.speed;
  if (!speed || node.inventory.cores < 1) return {};
  const bool is_best = actors::precision_named(node.inventory.precision) == precision;
  return (is_best ? speed->best : speed->plain) / node.inventory.cores;
}

/// Returns how many nominal cores the node is worth.
double speed_of(const actors::NodeHere& node, kernels::Precision precision) {
  const auto rate = core_rate(node, precision);
  const double cores = node.inventory.cores;
  return rate ? cores * *rate / nominal_device().rate.operations : cores;
}

/// Adds the measured links between nodes of these hosts. A link is as slow as its slower direction.
void add_measured_links(const std::vector<actors::NodeHere>& nodes, sched::Cluster& cluster) {
  std::set<std::string> hosts;
  for (const auto& node : nodes) hosts.insert(node.inventory.host);
  for (const auto& node : nodes)
    for (const auto& link : node.links) {
      if (!hosts.contains(link.host)) continue;
      const auto ends = std::minmax(node.inventory.host, link.host);
      // Until a rate is known, that of the usual network counts.
      const double rate = link.best.bytes_per_second.value_or(usual_network.bandwidth);
      const auto [known, is_new] =
          cluster.measured.try_emplace(ends, sched::Link{link.best.latency, rate});
      if (is_new) continue;
      known->second.latency = std::max(known->second.latency, link.best.latency);
      known->second.bandwidth = std::min(known->second.bandwidth, rate);
    }
}

std::vector<int> cuts_of(const sched::Plan& plan) {
  std::vector<int> cuts{plan.stages.front().first};
  for (const auto& stage : plan.stages) cuts.push_back(stage.last);
  return cuts;
}

}  // namespace

sched::Cluster cluster_of(const config::RunConfig& config,
                          const std::vector<actors::NodeHere>& nodes, kernels::Precision precision,
                          double slowness) {
  const bool on_gpus = config.train.device == config::RunConfig::Train::Device::cuda;
  const int devices = devices_wanted(config);
  const bool one_host = std::ranges::all_of(
      nodes, [&](const auto& node) { return node.inventory.host == nodes.front().inventory.host; });
  const int count = static_cast<int>(nodes.size());
  const int each = (devices + count - 1) / count;
  const auto within = nominal_device().link;
  sched::Cluster cluster;
  for (const auto& node : nodes) {
    auto& place = cluster.nodes.emplace_back();
    place.name = node.name;
    place.zone = node.inventory.host;
    // The speed of GPUs has nothing to do with that of cores.
    const double cores = on_gpus ? node.inventory.cores : speed_of(node, precision);
    place.devices.assign(static_cast<std::size_t>(each),
                         {.speed = std::clamp(cores / each / slowness, least_speed, most_speed),
                          .memory = node.inventory.memory / each});
    if (on_gpus) sched::put_on_gpus(place.devices, memory_of_gpus(node, nodes));
    place.inside = within;
    place.outside = one_host ? within : usual_network;
  }
  add_measured_links(nodes, cluster);
  return cluster;
}

Result<sched::PlanRequest> live_request(const config::RunConfig& config, const RunSetup& setup,
                                        const std::vector<actors::NodeHere>& nodes,
                                        double slowness) {
  auto request = plan_request(config, setup, cluster_of(config, nodes, setup.precision, slowness),
                              nominal_device(), setup.times);
  if (!request) return request;
  request->effort = 0;  // No schedule search: nodes know schedules only by name.
  if (is_on_gpus(config)) return request;
  // Devices that share a core wait for each other's messages, too.
  int shared = 1;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto devices = static_cast<int>(request->cluster.nodes[i].devices.size());
    shared = std::max(shared, devices / std::max(1, nodes[i].inventory.cores));
  }
  request->pass *= shared;
  request->hand_over *= shared;
  return request;
}

Result<LivePlan> plan_for(const config::RunConfig& config, RunSetup& setup,
                          std::vector<actors::NodeHere> nodes, double slowness,
                          std::vector<UnitTimes> (*measure)(const MeasuredModel&)) {
  LivePlan live;
  actors::level_speeds(nodes);
  const auto precision =
      choose_precision(config, nodes_taken(config, nodes), nodes, live.choice.why);
  if (!precision) return precision.error();
  setup.precision = *precision;
  live.choice.precision = to_string(*precision);
  if (!config.precision.compute)
    std::erase_if(nodes,
                  [&](const auto& node) { return !actors::has(node.inventory, *precision); });

  const auto most = static_cast<std::size_t>(config.elastic.nodes.most);
  if (nodes.size() > most) {
    std::ranges::stable_sort(nodes, std::greater<>(),
                             [](const auto& node) { return node.inventory.cores; });
    nodes.resize(most);
  }

  if (measure) setup.times = unit_times(config, setup, nominal_device(), measure);
  auto request = live_request(config, setup, nodes, slowness);
  if (!request) return request.error();
  if (is_asynchronous(config)) {
    const auto nominal = nominal_request(config, setup, MemoryOf::elsewhere);
    if (!nominal) return nominal.error();
    const auto everywhere = sched::make_plan(*nominal);
    if (!everywhere) return everywhere.error();
    request->boundaries = cuts_of(*everywhere);
  }
  auto plans = sched::candidate_plans(*request);
  if (!plans) return plans.error();
  auto choice = choice_of(config, plans->front());
  choice.precision = std::move(live.choice.precision);
  choice.why = std::move(live.choice.why);
  choice.plan_why = explain_choice(plans->front(), *plans);
  live.choice = std::move(choice);
  live.request = std::move(*request);
  live.plan = plans->front();
  live.candidates = std::move(*plans);
  return live;
}

RunChoice choice_of(const config::RunConfig& config, const sched::Plan& plan) {
  RunChoice choice;
  choice.chunks = plan.chunks;
  choice.replicas = static_cast<int>(plan.replicas.size());
  choice.schedule = plan.schedule;
  if (!is_asynchronous(config)) choice.stages = cuts_of(plan);
  return choice;
}

std::string RunChoice::plan_name() const {
  std::string name = schedule + " x" + std::to_string(replicas) + " /" + std::to_string(chunks);
  for (const int stage : stages) name += " " + std::to_string(stage);
  return name;
}

double computing_of(const sched::PlanRequest& request, const sched::Plan& plan) {
  double most = 0;
  for (const auto& replica : plan.replicas) {
    std::vector<double> busy(replica.places.size());
    for (const auto& seat : plan.seats) {
      const auto position = static_cast<std::size_t>(seat.position);
      const auto& stage = plan.stages[static_cast<std::size_t>(seat.stage)];
      const auto routes = static_cast<double>(replica.schedule->routes.size());
      busy[position] += replica.schedule->micro_batches / routes *
                        (stage.forward + stage.backward).count() /
                        sched::at(request.cluster, replica.places[position]).speed;
    }
    most = std::max(most, *std::ranges::max_element(busy));
  }
  return most;
}

std::string explain_choice(const sched::Plan& plan, const std::vector<sched::Plan>& candidates) {
  constexpr std::size_t most = 4;
  const auto layout = [](const sched::Plan& one) {
    return std::tuple(one.stages.size(), one.replicas.size());
  };
  const auto text = [](const sched::Plan& one) {
    return one.schedule + " with " + counted(one.stages.size(), "stage") + " and " +
           counted(one.replicas.size(), "replica") + " " + sched::show(one.step);
  };
  std::string why = "expected time of a step: " + text(plan);
  std::vector layouts{layout(plan)};
  std::string others;
  for (const auto& one : candidates) {
    if (layouts.size() > most || std::ranges::count(layouts, layout(one)) > 0) continue;
    layouts.push_back(layout(one));
    others += (others.empty() ? "; others: " : ", ") + text(one);
  }
  return why + others;
}

void take(const RunChoice& choice, config::Loaded& loaded) {
  set_precision(loaded, choice.precision);
  if (choice.stages.empty()) return;
  config::set_at(loaded.tree, "pipeline.stages",
                 Value::List(choice.stages.begin(), choice.stages.end()));
  config::set_at(loaded.tree, "pipeline.chunks", choice.chunks);
  config::set_at(loaded.tree, "pipeline.replicas", choice.replicas);
  if (loaded.config.pipeline.schedule == "auto")
    config::set_at(loaded.tree, "pipeline.schedule", choice.schedule);
  loaded.config.pipeline = config::read_run_config(loaded.tree).pipeline;
}

Status take_precision(storage::Files& files, config::Loaded& loaded) {
  const auto wanted = loaded.config.precision.compute;
  if (wanted && !is_family(*wanted)) return Done{};
  const auto listed = storage::list_checkpoints(files, loaded.config.checkpoint.directory);
  if (!listed) return listed.error();
  using State = storage::ListedCheckpoint::State;
  const auto newest =
      std::ranges::find(*listed, State::complete, &storage::ListedCheckpoint::state);
  if (newest == listed->end()) return Done{};
  const Value* made = config::value_at(newest->manifest->recipe, precision_key);
  if (!made || !made->text()) return Done{};
  const auto precision = actors::precision_named(*made->text());
  // The checkpoint's precision is "auto" or belongs to another family; a later check compares the
  // whole recipe.
  if (*made->text() != to_string(precision)) return Done{};
  if (wanted && !is_of(*wanted, precision)) return Done{};
  set_precision(loaded, *made->text());
  return Done{};
}

}  // namespace troupe::apps
