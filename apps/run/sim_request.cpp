#include "apps/run/sim_request.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "apps/run/plan_request.h"
#include "apps/run/run_setup.h"
#include "core/units.h"
#include "schedules/generators/registry.h"
#include "schedules/plan/replan.h"

namespace troupe::apps {

namespace sim = troupe::simulation;

namespace {

namespace sched = troupe::schedules;

/// Returns the planning problem for all nodes of the place. A synchronous schedule computes the
/// same numbers on any number of nodes.
Result<sched::PlanRequest> elastic_request(storage::Files& files, const config::RunConfig& config,
                                           SimPlace place) {
  const auto setup = set_up(files, config);
  if (!setup) return setup.error();
  auto request = plan_request(config, *setup, std::move(place.cluster), place.profile);
  if (!request) return request.error();
  const auto* named = sched::find_schedule(request->schedule);
  const bool asynchronous = named && named->mode == sched::Mode::asynchronous;
  if (!asynchronous && !request->written) request->replicas.reset();
  return request;
}

// Measured: 64 MiB were written and synced within 71 ms.
constexpr double disk_bandwidth = 0.9e9;
// The assumed copy rate of one thread if no profile is given; 3.7 and 12 GB/s were measured.
constexpr double memory_bandwidth = 3.7e9;

/// Returns the bytes of weights and optimizer state, which are saved and read.
double state_bytes(const sched::PlanRequest& request) {
  double bytes = 0;
  for (const auto& unit : request.units) bytes += static_cast<double>(unit.weight + unit.optimizer);
  return bytes;
}

/// Returns the bandwidth of the slowest host link.
double slowest_link(const sched::Cluster& cluster) {
  double slowest = std::numeric_limits<double>::infinity();
  for (const auto& node : cluster.nodes) slowest = std::min(slowest, node.outside.bandwidth);
  return slowest;
}

/// Returns the memory bandwidth of the slowest node.
double slowest_copying(const sched::Cluster& cluster) {
  double slowest = std::numeric_limits<double>::infinity();
  for (const auto& node : cluster.nodes) {
    const bool is_known = std::isfinite(node.inside.bandwidth);
    slowest = std::min(slowest, is_known ? node.inside.bandwidth : memory_bandwidth);
  }
  return slowest;
}

sim::ForecastOptions options_for(const SimTerms& terms, const config::RunConfig& config,
                                 const sched::PlanRequest& request, sched::PlanBook& book) {
  sim::ForecastOptions options;
  for (const auto& node : request.cluster.nodes) options.hosts.push_back(node.name);
  const double bytes = state_bytes(request);
  const double bandwidth = slowest_link(request.cluster);
  const double copying = slowest_copying(request.cluster);
  const int copies = config.elastic.copies;
  options.plan = [&book, &request, bytes, bandwidth, copying,
                  copies](const std::vector<int>& hosts) {
    auto entry = book.look_up(hosts);
    sim::HostPlan plan;
    plan.text = entry.made.reason;
    if (!entry.made.plan) return plan;
    const auto& made = *entry.made.plan;
    const auto step = request.objective == sched::Objective::period ? made.period : made.step;
    const auto positions = static_cast<double>(made.replicas.front().places.size());
    // The replicas of a stage divide its state among them.
    const auto shares = positions * static_cast<double>(made.replicas.size());
    plan.hosts = std::move(entry.nodes);
    plan.rate = 1 / step.count();
    plan.store = from_seconds(bytes / bandwidth + bytes / disk_bandwidth);
    plan.fetch = from_seconds(bytes / positions / bandwidth);
    plan.copy = from_seconds(copies * bytes / shares / copying);
    plan.text = made.schedule + ", " + std::to_string(made.stages.size()) + " stages, " +
                std::to_string(made.replicas.size()) + " replicas";
    return plan;
  };
  options.trace = failures(terms, static_cast<int>(options.hosts.size()));
  options.copies = copies;
  options.length = from_seconds(terms.hours * 3600);
  options.notice = from_seconds(terms.notice);
  std::vector<int> all;
  for (std::size_t host = 0; host < options.hosts.size(); ++host)
    all.push_back(static_cast<int>(host));
  const auto whole = options.plan(all);
  auto& limits = options.limits;
  limits.fewest = config.elastic.nodes.fewest;
  limits.most = static_cast<int>(options.hosts.size());
  limits.keep = config.checkpoint.keep;
  limits.start_patience = config.limits.start_patience;
  limits.gather_patience = config.limits.gather_patience;
  limits.prepare_patience = config.limits.prepare_patience;
  limits.load_patience = config.limits.load_patience + 2 * whole.store;
  limits.suspend_patience = config.limits.suspend_patience;
  limits.futile_attempts = config.limits.futile_epochs;
  limits.most_futile = config.limits.futile_epochs + config.limits.strikes;
  // A switch writes the whole state and reads it again.
  options.switches.cost = 2 * whole.store + std::chrono::milliseconds(200);
  options.save_every =
      config.checkpoint.every.steps > 0
          ? config.checkpoint.every.steps
          : std::max<std::int64_t>(1, static_cast<std::int64_t>(
                                          in_seconds(config.checkpoint.every.time) * whole.rate));
  options.steps = std::max<std::int64_t>(config.train.steps, 1);
  return options;
}

Value to_value(const sim::Recovery& recovery) {
  Value value;
  value.set("time", in_seconds(recovery.at));
  value.set("why", recovery.why);
  value.set("lost", recovery.lost);
  value.set("from", recovery.from_memory ? "memory" : "checkpoint");
  value.set("detect", in_seconds(recovery.detect));
  value.set("freeze", in_seconds(recovery.freeze));
  value.set("plan", in_seconds(recovery.plan));
  value.set("prepare", in_seconds(recovery.prepare));
  value.set("load", in_seconds(recovery.load));
  value.set("again", in_seconds(recovery.again));
  value.set("steps_again", recovery.steps_again);
  return value;
}

}  // namespace

sim::FailureTrace failures(const SimTerms& terms, int nodes) {
  const auto length = from_seconds(terms.hours * 3600);
  if (terms.spot) {
    sim::SpotStatistics statistics;
    // Scales the statistics, which were taken from traces of 32 nodes, to this number of nodes.
    const double share = static_cast<double>(nodes) / statistics.most;
    statistics.most = nodes;
    statistics.live *= share;
    statistics.losses *= share;
    statistics.moments *= share;
    return sim::spot_trace(statistics, length, terms.seed);
  }
  if (terms.fail_every > 0)
    return sim::regular_trace(nodes, from_seconds(terms.fail_every),
                              from_seconds(terms.fail_every / 2), length, terms.seed);
  return terms.trace;
}

Value to_value(const Simulated& simulated) {
  const auto& report = simulated.report;
  Value value;
  value.set("copies", simulated.copies);
  value.set("seconds", in_seconds(report.length));
  value.set("steps", report.steps);
  value.set("steps_again", report.steps_again);
  value.set("losses", report.losses);
  value.set("arrivals", report.arrivals);
  value.set("mean_nodes", report.mean_nodes);
  value.set("goodput", report.goodput());
  if (!report.end.empty()) value.set("end", report.end);
  Value time;
  time.set("useful", report.useful);
  time.set("again", report.again);
  time.set("starting", report.starting);
  time.set("waiting", report.waiting);
  time.set("recovering", report.recovering);
  time.set("rest", report.rest);
  value.set("time", std::move(time));
  Value::List plans, recoveries;
  for (const auto& plan : report.plans) {
    Value one;
    one.set("time", in_seconds(plan.at));
    one.set("nodes", plan.nodes);
    one.set("steps_per_second", plan.rate);
    one.set("plan", plan.text);
    plans.push_back(std::move(one));
  }
  for (const auto& recovery : report.recoveries) recoveries.push_back(to_value(recovery));
  value.set("plans", std::move(plans));
  value.set("recoveries", std::move(recoveries));
  return value;
}

Result<Simulated> simulate(storage::Files& files, const config::RunConfig& config, SimPlace place,
                           const SimTerms& terms) {
  const auto request = elastic_request(files, config, std::move(place));
  if (!request) return request.error();
  sched::PlanBook book(*request);
  auto report = sim::forecast(options_for(terms, config, *request, book));
  return Simulated{std::move(report), config.elastic.copies, book.plans_made()};
}

}  // namespace troupe::apps
