#include "schedules/plan/plan.h"

#include <cstddef>
#include <cstdio>
#include <limits>

#include "apps/client/which_head.h"
#include "apps/command.h"
#include "apps/commands/cluster_file.h"
#include "apps/events/terminal_width.h"
#include "apps/gpu/card.h"
#include "apps/machine/machine_share.h"
#include "apps/machine/measure_units.h"
#include "apps/machine/this_machine.h"
#include "apps/run/plan_request.h"
#include "apps/run/step_time.h"
#include "config/load.h"
#include "core/json.h"

namespace troupe::apps {
namespace {

namespace sched = troupe::schedules;

struct PlanArguments {
  std::string config;
  std::vector<std::string> settings;
  std::string cluster;
  std::string profile;
  std::string device;
  int nodes = 1;
  bool explain = false;
  WhichHead head;
};

Result<sched::DeviceProfile> profile_for(const PlanArguments& arguments, int devices,
                                         kernels::Precision precision) {
  if (!arguments.profile.empty()) return read_profile_file(arguments.profile);
  // Only cores are measured, even for a run on GPUs.
  const bool is_theirs = !kernels::is_on_tensor_cores(precision);
  return measure_this_machine(devices, is_theirs ? precision : kernels::fastest_bf16());
}

Result<sched::PlanRequest> request_for(storage::Files& files, const PlanArguments& arguments,
                                       const config::RunConfig& config, const CommonFlags& flags) {
  const auto setup = set_up(files, config);
  if (!setup) return setup.error();
  Shares shares{arguments.nodes, devices_wanted(config), own_machine_share().memory()};
  const auto profile = profile_for(arguments, shares.devices, setup->precision);
  if (!profile) return profile.error();
  std::vector<UnitTimes> times;
  if (arguments.profile.empty())
    times = unit_times(config, *setup, *profile, [&](const MeasuredModel& measured) {
      if (takes_seconds_to_measure(measured) && !flags.quiet)
        std::fputs("measuring some passes of the model\n", stderr);
      return measure_units_here(measured, shares.devices);
    });
  if (arguments.cluster.empty()) {
    auto gpus = gpus_for(config);
    if (!gpus)
      return Error{gpus.error().text + ", or name machines that have some: --cluster FILE"};
    shares.gpus = std::move(*gpus);
    return plan_request(config, *setup, this_machine(shares, *profile), *profile, times);
  }
  auto cluster = read_cluster_file(arguments.cluster);
  if (!cluster) return cluster.error();
  return plan_request(config, *setup, std::move(*cluster), *profile, times);
}

void print(const sched::PlanRequest& request, const sched::Plan& plan,
           const PlanArguments& arguments, const CommonFlags& flags) {
  const auto changes = sched::outlooks(request);
  if (flags.output == "json") {
    Value all = sched::to_value(request, plan);
    all.set("outlooks", sched::to_value(plan, changes));
    if (arguments.explain) all.set("explanation", sched::explain(request, plan));
    std::puts(to_json(all).c_str());
    return;
  }
  const auto columns = columns_of(stdout).value_or(std::numeric_limits<std::size_t>::max());
  std::string text =
      sched::to_table(request, plan, columns) + "\n" + sched::to_table(plan, changes, columns);
  if (arguments.explain) text += "\n" + sched::explain(request, plan);
  print_wrapped(text);
}

/// Prints the model of a step's time on GPUs that need not be here.
ExitCode model_step(const PlanArguments& arguments, config::RunConfig config,
                    const CommonFlags& flags) {
  if (!config.precision.compute)
    config.precision.compute = config::RunConfig::Precision::Compute::bf16_gpu;
  const auto files = storage::disk_files();
  const auto setup = set_up(*files, config);
  if (!setup) return invalid(setup.error());
  const auto time = step_time(config, *setup, *find_card(arguments.device));
  if (!time) return invalid(time.error());
  const auto detail = arguments.explain ? Detail::kernels : Detail::sums;
  if (flags.output == "json")
    std::puts(to_json(to_value(*time, detail)).c_str());
  else
    std::fputs(to_table(*time, detail).c_str(), stdout);
  return ExitCode::done;
}

ExitCode plan(const PlanArguments& arguments, const CommonFlags& flags) {
  auto settings = arguments.settings;
  if (!arguments.device.empty()) settings.emplace_back("train.device=cuda");
  const auto loaded = config::load({arguments.config, settings});
  if (!loaded) return complain(ExitCode::invalid, loaded.error().text);
  if (!loaded->warnings.empty()) std::fputs(loaded->warnings.c_str(), stderr);
  if (!arguments.head.address.empty())
    return ask(arguments.head, "plan.request", loaded->tree, flags,
               [](const Value& answer) { print_wrapped(text_of(answer, "table")); });
  if (!arguments.device.empty()) return model_step(arguments, loaded->config, flags);
  const auto files = storage::disk_files();
  const auto request = request_for(*files, arguments, loaded->config, flags);
  if (!request) return invalid(request.error());
  const auto made = sched::make_plan(*request);
  if (!made) return invalid(made.error());
  print(*request, *made, arguments, flags);
  return ExitCode::done;
}

}  // namespace

void add_plan(Program& program) {
  auto [command, arguments] = add_command(program, program.app, "plan",
                                          "predict placement, memory and time of a run", plan);
  command
      ->add_option("config", arguments.config,
                   "configuration: a .toml or .json file; - reads JSON from stdin")
      ->required();
  command
      ->add_option("--set", arguments.settings,
                   "key=value: set a key of the configuration; can be repeated")
      ->allow_extra_args(false);
  auto* cluster = command->add_option("--cluster", arguments.cluster,
                                      "cluster description: a .toml or .json file (default: split "
                                      "this machine into --nodes nodes)");
  arguments.head.add_to(*command);
  command->get_option("--head")
      ->description("plan for the nodes of the head at this address")
      ->excludes(cluster);
  command
      ->add_option("--nodes", arguments.nodes,
                   "number of nodes to split this machine into (default: 1)")
      ->check(CLI::Range(1, 1024))
      ->excludes(cluster)
      ->excludes("--head");
  auto* profile =
      command->add_option("--profile", arguments.profile,
                          "measurements of a device of speed 1, from `troupe bench kernels "
                          "--profile` (default: measure this machine)");
  command
      ->add_option("--device", arguments.device,
                   "instead of a plan, print the shortest time of a step on this GPU: a100, h100 "
                   "or h200; no GPU is needed")
      ->check(CLI::IsMember(card_names()))
      ->excludes(cluster)
      ->excludes(profile)
      ->excludes("--nodes")
      ->excludes("--head");
  command->add_flag("--explain", arguments.explain,
                    "print the formula for each number; with --device, each kernel of a step");
}

}  // namespace troupe::apps
