#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "apps/command.h"
#include "apps/commands/cluster_file.h"
#include "apps/commands/usage.h"
#include "apps/run/sim_request.h"
#include "config/load.h"
#include "core/json.h"
#include "core/units.h"
#include "simulation/forecast.h"
#include "storage/files/files.h"

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
  std::string make_trace;
  SimTerms terms;
};

void print(const Simulated& simulated) {
  const auto& report = simulated.report;
  if (simulated.copies > 1)
    std::printf("elastic.copies = %d: from the memory of nodes, or the newest checkpoint\n",
                simulated.copies);
  else
    std::puts("elastic.copies = 1: from the newest checkpoint");
  const double all = std::max(in_seconds(report.length), 1e-9);
  const auto percent = [&](double time) { return 100 * time / all; };
  std::printf("%.2f h, %.1f nodes on average, %d lost, %d come; %lld steps, %lld of them again\n",
              all / 3600, report.mean_nodes, report.losses, report.arrivals,
              static_cast<long long>(report.steps), static_cast<long long>(report.steps_again));
  if (!report.end.empty()) std::printf("the run ends: %s\n", report.end.c_str());
  std::printf("goodput %.2f %%\n", 100 * report.goodput());
  std::printf(
      "time: useful %.2f %%, again %.2f %%, starting %.2f %%, too few nodes %.2f %%, recovering "
      "%.2f %%, rest %.2f %%\n",
      percent(report.useful), percent(report.again), percent(report.starting),
      percent(report.waiting), percent(report.recovering), percent(report.rest));
  std::printf("plans in force: %zu, of %d that were made\n", report.plans.size(),
              simulated.plans_made);
  auto recoveries = report.recoveries;
  std::ranges::sort(recoveries, {}, [](const auto& one) { return one.total(); });
  const auto from_memory =
      std::ranges::count_if(recoveries, [](const auto& one) { return one.from_memory; });
  std::printf("recoveries: %zu, %td of them from memory\n", recoveries.size(), from_memory);
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

Status write_file(const std::string& path, const std::string& text) {
  return storage::replace_file(*storage::disk_files(), path, text);
}

std::string to_lines(const std::vector<Value>& timeline) {
  std::string text;
  for (const auto& event : timeline) text += to_json(event) + "\n";
  return text;
}

/// Simulates the configured recovery and the alternative: from checkpoints alone, or with two
/// copies.
ExitCode simulate_both(config::RunConfig config, const SimPlace& place,
                       const SimArguments& arguments, const SimTerms& terms,
                       const CommonFlags& flags) {
  const auto disk = storage::disk_files();
  std::vector<Simulated> both;
  for (const int copies : {config.elastic.copies, config.elastic.copies > 1 ? 1 : 2}) {
    config.elastic.copies = copies;
    auto simulated = simulate(*disk, config, place, terms);
    if (!simulated) return invalid(simulated.error());
    both.push_back(std::move(*simulated));
  }
  if (!arguments.timeline.empty()) {
    auto written = write_file(arguments.timeline, to_lines(both.front().report.timeline));
    if (!written) return complain(ExitCode::failed, "error: " + written.error().text);
  }
  if (flags.output == "json") {
    Value value = to_value(both.front());
    value.set("otherwise", to_value(both.back()));
    std::puts(to_json(value).c_str());
    return ExitCode::done;
  }
  print(both.front());
  std::puts("");
  print(both.back());
  return ExitCode::done;
}

ExitCode run(const SimArguments& arguments, const CommonFlags& flags) {
  const auto loaded = config::load({arguments.config, arguments.settings});
  if (!loaded) return complain(ExitCode::invalid, loaded.error().text);
  if (!loaded->warnings.empty()) std::fputs(loaded->warnings.c_str(), stderr);
  const auto place = place_for(arguments);
  if (!place) return invalid(place.error());
  const auto terms = terms_for(arguments);
  if (!terms) return invalid(terms.error());
  if (arguments.make_trace.empty())
    return simulate_both(loaded->config, *place, arguments, *terms, flags);
  const auto trace = failures(*terms, static_cast<int>(place->cluster.nodes.size()));
  if (trace.empty())
    return complain(ExitCode::usage,
                    "error: --make-trace: wanted --spot or --fail-every, which say what to make");
  if (auto written = write_file(arguments.make_trace, sim::write_bamboo_trace(trace)); !written)
    return complain(ExitCode::failed, "error: " + written.error().text);
  return ExitCode::done;
}

}  // namespace

void add_sim(Program& program) {
  auto [command, arguments] = add_command(
      program, program.app, "sim", "simulate hours on an unreliable cluster in seconds", run);
  command
      ->add_option("config", arguments.config,
                   "configuration: a .toml or .json file; - reads JSON from stdin")
      ->required();
  command
      ->add_option("--set", arguments.settings,
                   "key=value: set a key of the configuration; can be repeated")
      ->allow_extra_args(false);
  command->add_option("--cluster", arguments.cluster, "cluster description: a .toml or .json file")
      ->required();
  command->add_option("--profile", arguments.profile,
                      "measurements of a device of speed 1, from `troupe bench kernels --profile` "
                      "(default: an average core)");
  auto* failures = command->add_option("--failures", arguments.failures,
                                       "trace of nodes that join and leave: Bamboo's lines of "
                                       "milliseconds,add,node or SkyPilot's JSON");
  auto* spot = command->add_flag("--spot", arguments.terms.spot,
                                 "let nodes join and leave like measured spot instances");
  command
      ->add_option("--fail-every", arguments.terms.fail_every,
                   "seconds between two departures; a node stays away for half as long")
      ->check(above_zero())
      ->excludes(failures)
      ->excludes(spot);
  spot->excludes(failures);
  command->add_option("--hours", arguments.terms.hours, "hours to simulate (default: 1)")
      ->check(CLI::Range(0.001, 10000.0));
  command
      ->add_option("--notice", arguments.terms.notice,
                   "seconds of notice before a node leaves (default: 0)")
      ->check(not_negative());
  command->add_option("--seed", arguments.terms.seed, "random seed (default: 1)");
  command->add_option("--make-trace", arguments.make_trace,
                      "write the trace of --spot or --fail-every to this file, in the form that "
                      "--failures reads, and simulate nothing");
  command->add_option("--timeline", arguments.timeline,
                      "write what happened to this file, as one JSON object per line");
}

}  // namespace troupe::apps
