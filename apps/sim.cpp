#include <algorithm>
#include <chrono>
#include <cstdio>

#include "apps/cluster_file.h"
#include "apps/command.h"
#include "apps/sim_request.h"
#include "config/load.h"
#include "core/json.h"
#include "core/seconds.h"
#include "simulation/replay.h"
#include "storage/files.h"

namespace troupe::apps {
namespace {

namespace sim = troupe::simulation;

struct SimArguments {
  std::string config;
  std::vector<std::string> settings;
  std::string cluster;
  std::string profile;
  std::string failures;
  std::string timeline;
  SimTerms terms;
};

void print(const sim::ReplayReport& report, int plans_made) {
  const double all = std::max(in_seconds(report.length), 1e-9);
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
                in_seconds(one.detect), in_seconds(one.freeze), in_seconds(one.plan),
                in_seconds(one.prepare), in_seconds(one.load), in_seconds(one.again),
                in_seconds(one.total()));
  };
  row("shortest", 0);
  row("median", recoveries.size() / 2);
  row("longest", recoveries.size() - 1);
}

Result<SimPlace> place_for(const SimArguments& arguments) {
  SimPlace place;
  auto cluster = read_cluster_file(arguments.cluster);
  if (!cluster) return cluster.error();
  place.cluster = std::move(*cluster);
  if (arguments.profile.empty()) return place;
  auto profile = read_profile_file(arguments.profile);
  if (!profile) return profile.error();
  place.profile = std::move(*profile);
  return place;
}

Result<SimTerms> terms_for(const SimArguments& arguments) {
  auto terms = arguments.terms;
  if (arguments.failures.empty()) return terms;
  const auto bytes = storage::disk_files()->read(arguments.failures);
  if (!bytes) return bytes.error();
  auto trace = sim::read_trace(bytes->text());
  if (!trace) return Error{arguments.failures + ":" + trace.error().text};
  terms.trace = std::move(*trace);
  return terms;
}

ExitCode run(const SimArguments& arguments, const CommonFlags& flags) {
  const auto loaded = config::load({arguments.config, arguments.settings});
  if (!loaded) return complain(ExitCode::invalid, loaded.error().text);
  if (!loaded->warnings.empty()) std::fputs(loaded->warnings.c_str(), stderr);
  auto place = place_for(arguments);
  if (!place) return invalid(place.error());
  const auto terms = terms_for(arguments);
  if (!terms) return invalid(terms.error());
  const auto simulated = simulate(loaded->config, std::move(*place), *terms);
  if (!simulated) return invalid(simulated.error());
  const auto& report = simulated->report;
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
    print(report, simulated->plans_made);
  return ExitCode::done;
}

}  // namespace

void add_sim(Program& program) {
  auto [command, arguments] =
      add_command(program, program.app, "sim",
                  "hours of a run on a cluster that comes and goes, within seconds: the real "
                  "control plane on a virtual clock",
                  run);
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
  auto* spot = command->add_flag("--spot", arguments.terms.spot,
                                 "nodes come and go as spot instances were seen to");
  command
      ->add_option("--fail-every", arguments.terms.fail_every,
                   "seconds after which a node goes, for half as long")
      ->check(CLI::PositiveNumber)
      ->excludes(failures)
      ->excludes(spot);
  spot->excludes(failures);
  command->add_option("--hours", arguments.terms.hours, "for so long, 1 by default")
      ->check(CLI::Range(0.001, 10000.0));
  command->add_option("--notice", arguments.terms.notice, "seconds that a node knows beforehand")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--seed", arguments.terms.seed, "what is drawn, is drawn by it");
  command->add_option("--timeline", arguments.timeline,
                      "a file: what happened, a line of JSON each");
}

}  // namespace troupe::apps
