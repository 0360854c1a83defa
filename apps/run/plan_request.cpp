#include "apps/run/plan_request.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "apps/gpu/gpus.h"
#include "apps/machine/machine_share.h"
#include "apps/machine/this_machine.h"
#include "apps/run/schedule_file.h"
#include "schedules/generators/registry.h"

namespace troupe::apps {
namespace {

namespace sched = troupe::schedules;

// The cost of a pass besides its kernels: messages between actors, and the wake of a device. An
// estimate.
constexpr auto pass_cost = std::chrono::microseconds(40);
// Six messages in a row and four jobs: gradients go to the optimizer, norms to all optimizers, and
// the next weights to the stage. An estimate.
constexpr auto hand_over_cost = std::chrono::microseconds(150);
// Forecasts that are this close say nothing about which plan is faster.
constexpr double forecasts_alike = 0.03;

sched::Seconds time_of(const std::vector<models::KernelWork>& pass,
                       const sched::DeviceProfile& profile) {
  sched::Seconds time{};
  for (const auto& kernel : pass)
    time += sched::time_of({kernel.operations, kernel.bytes}, kernel.kernel, profile);
  return time;
}

/// Returns how many gradient sums the fold of `groups` groups holds at most while a micro-batch has
/// all its activations. The fold holds one sum for each binary tree of earlier groups, and one in
/// progress. A group's first micro-batch makes the latter only as its activations are freed.
int gradient_sums(int groups, std::int64_t micro_batches) {
  const bool has_later_ones = micro_batches > groups;
  int most = 1;
  for (unsigned before = 0; before < static_cast<unsigned>(groups); ++before)
    most = std::max(most, std::popcount(before) + (has_later_ones ? 1 : 0));
  return most;
}

/// Returns the rules for what devices hold. In a synchronous run no pass runs while the optimizer
/// makes the next version; UnitCost::update_room counts that memory.
sched::HoldingRules holding_rules(const config::RunConfig& config, int groups,
                                  std::int64_t micro_batches) {
  const int replicas = config.pipeline.replicas.value_or(1);
  return {.versions_in_the_making = is_asynchronous(config) ? 1 : 0,
          .gradient_sums = gradient_sums((groups + replicas - 1) / replicas,
                                         (micro_batches + replicas - 1) / replicas),
          .makes_sum_in_backward = micro_batches == groups && groups > 1};
}

/// Returns whether the schedule may separate the halves of backward passes, so that memory for what
/// lies between them adds up.
bool has_halves(const sched::PlanRequest& request) {
  const auto is_half = [](sched::Action action) {
    return action.kind == sched::Kind::backward_input;
  };
  const auto halved = [&](const sched::Schedule& schedule) {
    return std::ranges::any_of(schedule.lanes, [&](const sched::Lane& lane) {
      return std::ranges::any_of(lane, is_half);
    });
  };
  if (request.written) return halved(*request.written);
  const auto made = sched::generate(request.schedule, {.stages = request.stages.value_or(1),
                                                       .micro_batches = request.micro_batches,
                                                       .chunks = request.chunks});
  return !made || halved(*made);
}

sched::UnitCost unit_cost(const models::UnitCosts& costs, const sched::PlanRequest& request,
                          const sched::DeviceProfile& profile) {
  sched::UnitCost unit;
  unit.name = costs.name;
  unit.forward = time_of(costs.work.forward, profile);
  unit.backward_input = time_of(costs.work.backward_input, profile);
  unit.backward_weight = time_of(costs.work.backward_weight, profile);
  unit.backward = unit.backward_input + unit.backward_weight;
  unit.update =
      sched::time_of({costs.orthogonal_operations, costs.update_bytes}, "optimizer_step", profile);

  const int replicas = request.replicas.value_or(1);
  const sched::Bytes micro_batches = (request.micro_batches + replicas - 1) / replicas;
  unit.parameters = costs.parameters;
  unit.weight = costs.held.weight;
  unit.gradient = costs.held.gradient;
  // Each replica has a shard of the optimizer state; with a server the first replica has all of it.
  const int sections = request.exchange == sched::Exchange::server ? 1 : replicas;
  const auto shared = [&](sched::Bytes moments) { return (moments + sections - 1) / sections; };
  unit.optimizer = shared(costs.held.optimizer) + micro_batches * costs.statistics;
  unit.update_room = costs.update_room;
  for (const auto& tie : costs.ties)
    unit.tied.push_back({tie.name, tie.bytes.weight, tie.bytes.gradient});

  unit.stash = costs.stash - costs.stash_shared;
  sched::Bytes first_stash = costs.stash;
  if (has_halves(request)) {
    unit.stash = std::max(unit.stash, costs.stash_weight);
    first_stash = std::max(first_stash, costs.stash_weight + costs.stash_weight_shared);
  }
  // A stage that recomputes keeps its whole bundle, of which a unit may hold less later.
  if (costs.boundary_kept > 0) first_stash = std::max(first_stash, costs.stash_input);
  unit.stash_shared = first_stash - unit.stash;
  unit.stash_weight = std::min(costs.stash_weight, unit.stash);
  unit.stash_weight_shared = std::min(costs.stash_weight_shared, unit.stash_shared);
  unit.stash_input = std::min(costs.stash_input, first_stash);
  unit.workspace = costs.workspace;
  unit.boundary = costs.boundary;
  unit.boundary_back = costs.boundary_back;
  return unit;
}

/// Scales the times of all units to the measured sums. A single unit keeps its share of the work:
/// the plan should not follow the noise of short measurements.
void take_times(const std::vector<UnitTimes>& measured, std::vector<sched::UnitCost>& units) {
  const auto scale = [&](double UnitTimes::*time, sched::Seconds sched::UnitCost::*foretold) {
    double sum = 0;
    sched::Seconds expected{};
    for (const auto& unit : measured) sum += unit.*time;
    for (const auto& unit : units) expected += unit.*foretold;
    if (expected.count() <= 0) return;
    for (auto& unit : units) unit.*foretold *= sum / expected.count();
  };
  scale(&UnitTimes::forward, &sched::UnitCost::forward);
  scale(&UnitTimes::backward, &sched::UnitCost::backward);
  scale(&UnitTimes::backward_input, &sched::UnitCost::backward_input);
  scale(&UnitTimes::backward_weight, &sched::UnitCost::backward_weight);
  scale(&UnitTimes::update, &sched::UnitCost::update);
}

sched::VersionRule version_rule(const config::RunConfig& config) {
  using LinearizeAt = config::RunConfig::Staleness::LinearizeAt;
  const auto* schedule = sched::find_schedule(config.pipeline.schedule);
  if (schedule && schedule->name == "pipedream-2bw") return sched::VersionRule::lag;
  switch (config.staleness.linearize_at) {
    case LinearizeAt::current:
    case LinearizeAt::extrapolated:
      return sched::VersionRule::newest;
    case LinearizeAt::forward:
      return sched::VersionRule::stash;
  }
  return sched::VersionRule::stash;
}

}  // namespace

bool is_asynchronous(const config::RunConfig& config) {
  const auto* schedule = sched::find_schedule(config.pipeline.schedule);
  return schedule && schedule->mode == sched::Mode::asynchronous;
}

int devices_wanted(const config::RunConfig& config) {
  const auto& pipeline = config.pipeline;
  const int stages = pipeline.stages.count.value_or(pipeline.chunks);
  return std::max(1, stages / pipeline.chunks) * pipeline.replicas.value_or(1);
}

models::CostRequest cost_request(const config::RunConfig& config, const RunSetup& setup) {
  return {.micro = setup.micro,
          .input = setup.train->shape().input,
          .target = setup.train->shape().target,
          .precision = setup.precision,
          .optimizer = config.optimizer,
          .staleness = is_asynchronous(config) ? config.staleness : models::StalenessOptions(),
          .computer = is_on_gpus(config) ? models::Computer::gpu : models::Computer::cores};
}

Result<sched::PlanRequest> plan_request(const config::RunConfig& config, const RunSetup& setup,
                                        sched::Cluster cluster, const sched::DeviceProfile& profile,
                                        const std::vector<UnitTimes>& times) {
  const auto costs = models::unit_costs(setup.model, cost_request(config, setup));
  if (!costs) return costs.error();

  const auto& pipeline = config.pipeline;
  sched::PlanRequest request;
  request.cluster = std::move(cluster);
  const std::int64_t micro_batches = config::micro_batches(config, setup.micro);
  request.micro_batches = static_cast<int>(micro_batches);
  request.groups = config::reduction_groups(config, micro_batches);
  request.schedule = pipeline.schedule;
  if (pipeline.schedule != "auto" && !sched::find_schedule(pipeline.schedule)) {
    auto written = read_schedule(*setup.files, pipeline.schedule);
    if (!written) return within("pipeline.schedule", written.error());
    request.written = std::move(*written);
  }
  request.stages = pipeline.stages.count;
  request.boundaries = pipeline.stages.boundaries;
  request.chunks = pipeline.chunks;
  request.replicas = pipeline.replicas;
  request.even = true;
  request.exchange = config.parallel.exchange;
  request.recompute = pipeline.recompute;
  request.memory = pipeline.memory;
  request.objective =
      is_asynchronous(config) ? sched::Objective::period : sched::Objective::makespan;
  request.pass = pass_cost;
  request.hand_over = hand_over_cost;
  request.alike = forecasts_alike;
  request.versions = version_rule(config);
  request.step_every = config.staleness.step_every;
  request.holding = holding_rules(config, request.groups, micro_batches);
  if (request.exchange == sched::Exchange::all_to_all && pipeline.replicas != 1)
    for (const auto& unit : *costs)
      request.holding.section_grain = std::max(request.holding.section_grain, unit.uncut_moments);
  for (const auto& unit : *costs) request.units.push_back(unit_cost(unit, request, profile));
  if (!times.empty()) take_times(times, request.units);
  return request;
}

std::vector<UnitTimes> unit_times(
    const config::RunConfig& config, const RunSetup& setup, const sched::DeviceProfile& profile,
    const std::function<std::vector<UnitTimes>(const MeasuredModel&)>& measure) {
  const auto conditions = cost_request(config, setup);
  const auto costs = models::unit_costs(setup.model, conditions);
  if (!costs) return {};  // plan_request() says why.
  sched::Seconds expected{};
  for (const auto& unit : *costs)
    for (const auto* pass :
         {&unit.work.forward, &unit.work.backward_input, &unit.work.backward_weight})
      expected += time_of(*pass, profile);
  return measure({setup.model, conditions, *costs, expected.count()});
}

Result<std::vector<sched::Bytes>> gpus_for(const config::RunConfig& config) {
  if (config.train.device != config::RunConfig::Train::Device::cuda)
    return std::vector<sched::Bytes>();
  auto room = gpu_room(devices_wanted(config));
  if (room && !room->empty()) return room;
  return no_gpu(room ? "there is none" : room.error().text);
}

Result<sched::PlanRequest> nominal_request(const config::RunConfig& config, const RunSetup& setup,
                                           MemoryOf memory) {
  const auto profile = nominal_device();
  Shares shares{1, devices_wanted(config)};
  if (memory == MemoryOf::this_machine) {
    auto gpus = gpus_for(config);
    if (!gpus) return gpus.error();
    shares.gpus = std::move(*gpus);
    shares.memory = own_machine_share().memory();
  }
  auto cluster = this_machine(shares, profile);
  if (memory == MemoryOf::elsewhere)
    for (auto& device : cluster.nodes.front().devices) device.memory = sched::unknown_memory;
  auto request = plan_request(config, setup, std::move(cluster), profile);
  // Plans of asynchronous runs rest on this request, and change their results. They stay.
  if (request) request->hand_over = {};
  return request;
}

}  // namespace troupe::apps
