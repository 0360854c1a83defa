#include <algorithm>
#include <cstdio>
#include <limits>

#include "apps/cluster_file.h"
#include "apps/command.h"
#include "apps/plan_request.h"
#include "apps/this_machine.h"
#include "config/load.h"
#include "core/json.h"
#include "schedules/registry.h"
#include "schedules/replan.h"
#include "simulation/replay.h"
#include "storage/files.h"

namespace troupe::apps {
namespace {

namespace sched = troupe::schedules;
namespace sim = troupe::simulation;

struct SimArguments {
  std::string config;
  std::vector<std::string> settings;
  std::string cluster;
  std::string profile;
  std::string failures;
  std::string timeline;
  double hours = 1;
  double notice = 0;
  double fail_every = 0;
  std::uint64_t seed = 1;
  bool spot = false;
};

double seconds(sim::Duration time) { return std::chrono::duration<double>(time).count(); }
sim::Duration duration(double seconds) {
  return std::chrono::duration_cast<sim::Duration>(std::chrono::duration<double>(seconds));
}

/// As many nodes as there are may have a part: a synchronous schedule changes no number by it.
Result<sched::PlanRequest> elastic_request(const SimArguments& arguments,
                                           const config::RunConfig& config) {
  const auto setup = set_up(config);
  if (!setup) return setup.error();
  auto cluster = read_cluster_file(arguments.cluster);
  if (!cluster) return cluster.error();
  auto profile = nominal_device();
  if (!arguments.profile.empty()) {
    auto read = read_profile_file(arguments.profile);
    if (!read) return read.error();
    profile = std::move(*read);
  }
  auto request = plan_request(config, *setup, std::move(*cluster), profile);
  if (!request) return request.error();
  const auto* named = sched::find_schedule(request->schedule);
  const bool asynchronous = named && named->mode == sched::Mode::asynchronous;
  if (!asynchronous && !request->written) request->replicas.reset();
  return request;
}

/// Weights and what the optimizer remembers: what is saved and read.
double state_bytes(const sched::PlanRequest& request) {
  double bytes = 0;
  for (const auto& unit : request.units) bytes += static_cast<double>(unit.weight + unit.optimizer);
  return bytes;
}

/// Through the slowest of the hosts' own links.
double slowest_link(const sched::Cluster& cluster) {
  double slowest = std::numeric_limits<double>::infinity();
  for (const auto& node : cluster.nodes) slowest = std::min(slowest, node.outside.bandwidth);
  return slowest;
}

Result<sim::FailureTrace> trace_for(const SimArguments& arguments, int nodes) {
  const auto length = duration(arguments.hours * 3600);
  if (arguments.spot) {
    sim::SpotStatistics statistics;
    // As the traces of 32 nodes, for as many as there are.
    const double share = static_cast<double>(nodes) / statistics.most;
    statistics.most = nodes;
    statistics.live *= share;
    statistics.losses *= share;
    statistics.moments *= share;
    return sim::spot_trace(statistics, length, arguments.seed);
  }
  if (arguments.fail_every > 0)
    return sim::regular_trace(nodes, duration(arguments.fail_every),
                              duration(arguments.fail_every / 2), length, arguments.seed);
  if (arguments.failures.empty()) return sim::FailureTrace();
  const auto bytes = storage::disk_files()->read(arguments.failures);
  if (!bytes) return bytes.error();
  auto trace = sim::read_trace(bytes->text());
  if (!trace) return Error{arguments.failures + ":" + trace.error().text};
  return trace;
}

sim::ReplayOptions options_for(const SimArguments& arguments, const config::RunConfig& config,
                               const sched::PlanRequest& request, sched::PlanBook& book,
                               sim::FailureTrace trace) {
  sim::ReplayOptions options;
  for (const auto& node : request.cluster.nodes) options.hosts.push_back(node.name);
  const double bytes = state_bytes(request);
  const double bandwidth = slowest_link(request.cluster);
  options.plan = [&book, &request, bytes, bandwidth](const std::vector<int>& hosts) {
    auto entry = book.look_up(hosts);
    sim::HostPlan plan;
    plan.text = entry.made.reason;
    if (!entry.made.plan) return plan;
    const auto& made = *entry.made.plan;
    const auto step = request.objective == sched::Objective::period ? made.period : made.step;
    const auto positions = static_cast<double>(made.replicas.front().places.size());
    plan.hosts = std::move(entry.nodes);
    plan.rate = 1 / step.count();
    plan.transfer = duration(bytes / positions / bandwidth);
    plan.text = made.schedule + ", " + std::to_string(made.stages.size()) + " stages, " +
                std::to_string(made.replicas.size()) + " replicas";
    return plan;
  };
  options.trace = std::move(trace);
  options.length = duration(arguments.hours * 3600);
  options.notice = duration(arguments.notice);
  std::vector<int> all;
  for (std::size_t host = 0; host < options.hosts.size(); ++host)
    all.push_back(static_cast<int>(host));
  const auto whole = options.plan(all);
  auto& limits = options.limits;
  limits.fewest = config.elastic.nodes.fewest;
  limits.most = static_cast<int>(options.hosts.size());
  limits.steps = std::max<std::int64_t>(config.train.steps, 1);
  limits.keep = config.checkpoint.keep;
  limits.start_patience = config.limits.start_patience;
  limits.gather_patience = config.limits.gather_patience;
  limits.prepare_patience = config.limits.prepare_patience;
  // The whole state through one link is the longest that it can take.
  const sim::Duration longest = duration(bytes / bandwidth);
  limits.load_patience = config.limits.load_patience + 2 * longest;
  limits.inventory_patience = config.limits.inventory_patience;
  limits.save_patience = config.limits.save_patience + 2 * longest;
  limits.suspend_patience = config.limits.suspend_patience;
  limits.futile_epochs = config.limits.futile_epochs;
  // Written by the nodes that are there, and read by those that are there then.
  limits.hold_time = 2 * whole.transfer + std::chrono::milliseconds(200);
  options.save_every =
      config.checkpoint.every.steps > 0
          ? config.checkpoint.every.steps
          : std::max<std::int64_t>(
                1, static_cast<std::int64_t>(seconds(config.checkpoint.every.time) * whole.rate));
  options.seed = arguments.seed;
  return options;
}

Value to_value(const sim::Recovery& recovery) {
  Value value;
  value.set("time", seconds(recovery.at));
  value.set("why", recovery.why);
  value.set("lost", recovery.lost);
  value.set("detect", seconds(recovery.detect));
  value.set("freeze", seconds(recovery.freeze));
  value.set("plan", seconds(recovery.plan));
  value.set("prepare", seconds(recovery.prepare));
  value.set("load", seconds(recovery.load));
  value.set("again", seconds(recovery.again));
  value.set("steps_again", recovery.steps_again);
  return value;
}

Value to_value(const sim::ReplayReport& report) {
  Value value;
  value.set("seconds", seconds(report.length));
  value.set("steps", report.steps);
  value.set("steps_again", report.steps_again);
  value.set("losses", report.losses);
  value.set("arrivals", report.arrivals);
  value.set("mean_nodes", report.mean_nodes);
  value.set("goodput", report.goodput());
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
    one.set("time", seconds(plan.at));
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

void print(const sim::ReplayReport& report, int plans_made) {
  const double all = std::max(seconds(report.length), 1e-9);
  const auto percent = [&](double time) { return 100 * time / all; };
  std::printf("%.2f h, %.1f nodes on average, %d lost, %d come; %lld steps, %lld of them again\n",
              all / 3600, report.mean_nodes, report.losses, report.arrivals,
              static_cast<long long>(report.steps), static_cast<long long>(report.steps_again));
  std::printf("goodput %.2f %%\n", 100 * report.goodput());
  std::printf(
      "time: useful %.2f %%, again %.2f %%, starting %.2f %%, too few nodes %.2f %%, recovering "
      "%.2f %%, rest %.2f %%\n",
      percent(report.useful), percent(report.again), percent(report.starting),
      percent(report.waiting), percent(report.recovering), percent(report.rest));
  std::printf("plans in force: %zu, of %d that were made\n", report.plans.size(), plans_made);
  auto recoveries = report.recoveries;
  std::ranges::sort(recoveries, {}, [](const auto& one) { return one.total(); });
  std::printf("recoveries: %zu\n", recoveries.size());
  if (recoveries.empty()) return;
  std::printf("  %-8s %9s %9s %9s %9s %9s %9s %9s\n", "", "detect", "freeze", "plan", "prepare",
              "load", "again", "all");
  const auto row = [&](const char* name, std::size_t index) {
    const auto& one = recoveries[index];
    std::printf("  %-8s %7.3f s %7.3f s %7.3f s %7.3f s %7.3f s %7.3f s %7.3f s\n", name,
                seconds(one.detect), seconds(one.freeze), seconds(one.plan), seconds(one.prepare),
                seconds(one.load), seconds(one.again), seconds(one.total()));
  };
  row("shortest", 0);
  row("median", recoveries.size() / 2);
  row("longest", recoveries.size() - 1);
}

ExitCode simulate(const SimArguments& arguments, const CommonFlags& flags) {
  const auto loaded = config::load({arguments.config, arguments.settings});
  if (!loaded) return complain(ExitCode::invalid, loaded.error().text);
  if (!loaded->warnings.empty()) std::fputs(loaded->warnings.c_str(), stderr);
  const auto request = elastic_request(arguments, loaded->config);
  if (!request) return complain(ExitCode::invalid, "error: " + request.error().text);
  sched::PlanBook book(*request);
  const int nodes = static_cast<int>(request->cluster.nodes.size());
  auto trace = trace_for(arguments, nodes);
  if (!trace) return complain(ExitCode::invalid, "error: " + trace.error().text);
  const auto options = options_for(arguments, loaded->config, *request, book, std::move(*trace));
  const auto report = sim::replay(options);
  if (!report.flaw.empty())
    return complain(ExitCode::failed, "error: the simulation contradicts itself: " + report.flaw);
  if (!arguments.timeline.empty()) {
    std::string text;
    for (const auto& event : report.timeline) text += to_json(event) + "\n";
    const auto files = storage::disk_files();
    if (auto written = storage::replace_file(*files, arguments.timeline, text); !written)
      return complain(ExitCode::failed, "error: " + written.error().text);
  }
  if (flags.output == "json")
    std::puts(to_json(to_value(report)).c_str());
  else
    print(report, book.plans_made());
  return ExitCode::done;
}

}  // namespace

void add_sim(Program& program) {
  auto [command, arguments] =
      add_command(program, program.app, "sim",
                  "hours of a run on a cluster that comes and goes, within seconds: the real "
                  "control plane on a virtual clock",
                  simulate);
  command->add_option("config", arguments.config, "a .toml or .json file; - reads JSON from stdin")
      ->required();
  command->add_option("--set", arguments.settings, "key=value: sets a key of the configuration")
      ->allow_extra_args(false);
  command->add_option("--cluster", arguments.cluster, "a .toml or .json file of nodes")->required();
  command->add_option(
      "--profile", arguments.profile,
      "what a device of speed 1 does, from `troupe bench kernels --profile`; else a "
      "middling one");
  auto* failures = command->add_option(
      "--failures", arguments.failures,
      "which nodes come and go: Bamboo's lines of milliseconds,add,node or SkyPilot's JSON");
  auto* spot = command->add_flag("--spot", arguments.spot,
                                 "nodes come and go as spot instances were seen to");
  command
      ->add_option("--fail-every", arguments.fail_every,
                   "seconds after which a node goes, for half as long")
      ->check(CLI::PositiveNumber)
      ->excludes(failures)
      ->excludes(spot);
  spot->excludes(failures);
  command->add_option("--hours", arguments.hours, "for so long, 1 by default")
      ->check(CLI::Range(0.001, 10000.0));
  command->add_option("--notice", arguments.notice, "seconds that a node knows beforehand")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--seed", arguments.seed, "what is drawn, is drawn by it");
  command->add_option("--timeline", arguments.timeline,
                      "a file: what happened, a line of JSON each");
}

}  // namespace troupe::apps
