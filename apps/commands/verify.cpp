#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>

#include "apps/command.h"
#include "apps/commands/usage.h"
#include "apps/events/terminal_width.h"
#include "apps/machine/exit_now.h"
#include "apps/machine/watchdog.h"
#include "apps/real/read_host.h"
#include "apps/run/process_run.h"
#include "apps/run/run_setup.h"
#include "config/load.h"
#include "core/json.h"
#include "core/threads/real_env.h"
#include "storage/files/memory_files.h"

namespace troupe::apps {
namespace {

struct VerifyArguments {
  std::string config;
  std::vector<std::string> settings;
  int steps = 5;
  std::optional<double> tolerance;
};

/// Settings for one pipeline of one stage, the reference for every other plan.
const std::vector<std::string> as_one_stage = {
    "pipeline.schedule=1f1b", "pipeline.stages=1",        "pipeline.chunks=1",
    "pipeline.replicas=1",    "pipeline.recompute=false",
};

struct Trained {
  std::vector<NamedTensor> weights;
  bool asynchronous = false;
  std::string plan;
  std::unique_ptr<Watchdog> watchdog;
  std::unique_ptr<ProcessRun> run;  // Its devices own the weights' memory.
};

[[noreturn]] void give_up(const std::string& why) {
  const std::string text = "error: " + why;
  exit_now(
      ExitCode::failed, [&] { complain(ExitCode::failed, text); }, [&] { return text + "\n"; });
}

/// The process in which both runs play.
struct Place {
  RealEnv env;
  const HostFacts host = read_host();
  const std::unique_ptr<storage::Files> disk = storage::disk_files();
  actors::RealExecutors executors;
  actors::caf_shim::RealSystem system;
};

Result<Trained> train(Place& place, const VerifyArguments& arguments,
                      std::vector<std::string> settings, storage::Files& files,
                      config::Loaded& loaded) {
  settings.insert(settings.begin(), arguments.settings.begin(), arguments.settings.end());
  auto read = config::load({arguments.config, settings});
  if (!read) return read.error();
  loaded = std::move(*read);
  // Set after validation, so that the learning rate still follows the configured length.
  loaded.config.train.steps = arguments.steps;
  loaded.config.data.validate.reset();
  auto setup = set_up(*place.disk, loaded.config);
  if (!setup) return Error{"error: " + setup.error().text};
  auto made = ProcessRun::make(loaded, std::move(*setup), files, {},
                               {.executors = place.executors, .cores = place.host.cores});
  if (!made) return Error{"error: " + made.error().text};
  if (auto ready = (*made)->start(); !ready) return Error{"error: " + ready.error().text};
  Trained trained;
  trained.run = std::move(*made);
  trained.watchdog = std::make_unique<Watchdog>(
      place.env, loaded.config.limits.head_patience, [](const std::string& last) {
        give_up("no progress for too long; last known activity: " + last);
      });
  EventFd bell;
  auto outcome = trained.run->play_here(bell, {.env = place.env,
                                               .system = place.system,
                                               .watchdog = *trained.watchdog,
                                               .record = [](const Value&) {}});
  if (!outcome.all_gone) give_up(outcome.why);
  trained.watchdog->rest();
  if (outcome.how != actors::Outcome::How::done) return Error{"error: " + outcome.why};
  trained.weights = std::move(outcome.weights);
  trained.asynchronous = trained.run->rounds().asynchronous();
  trained.plan = trained.run->rounds().of_one_step()->schedule.name;
  return trained;
}

struct Difference {
  double largest = 0;
  std::string name;       // The tensor with the largest difference.
  std::int64_t bits = 0;  // The count of numbers that differ in any bit.
  std::int64_t numbers = 0;
};

Difference compare(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  std::map<std::string_view, const Tensor*> others;
  for (const auto& [name, tensor] : b) others.emplace(name, &tensor);
  Difference found;
  for (const auto& [name, tensor] : a) {
    const float* left = tensor.f32();
    const float* right = others.at(name)->f32();
    for (std::int64_t i = 0; i < tensor.count(); ++i) {
      ++found.numbers;
      if (std::bit_cast<std::uint32_t>(left[i]) == std::bit_cast<std::uint32_t>(right[i])) continue;
      ++found.bits;
      const double difference =
          std::abs(static_cast<double>(left[i]) - static_cast<double>(right[i]));
      if (difference >= found.largest) {
        found.largest = difference;
        found.name = name;
      }
    }
  }
  return found;
}

void print(const VerifyArguments& arguments, const CommonFlags& flags, const Trained& configured,
           const Difference& difference, bool good) {
  if (flags.output == "json") {
    Value value;
    value.set("steps", arguments.steps);
    value.set("schedule", configured.plan);
    value.set("asynchronous", configured.asynchronous);
    value.set("numbers", difference.numbers);
    value.set("different", difference.bits);
    value.set("largest", difference.largest);
    if (!difference.name.empty()) value.set("tensor", difference.name);
    value.set("good", good);
    std::puts(to_json(value).c_str());
    return;
  }
  const auto numbers = std::to_string(difference.numbers);
  const auto after =
      "after " + std::to_string(arguments.steps) + " steps of " + configured.plan + " ";
  if (difference.bits == 0)
    return print_wrapped(after + "all " + numbers +
                         " weights are bit-identical to those of one stage in one process\n");
  print_wrapped(after + std::to_string(difference.bits) + " of " + numbers +
                " weights differ from those of one stage; the largest difference is " +
                shortest(difference.largest) + ", in " + difference.name + "\n");
  if (configured.asynchronous && !arguments.tolerance)
    print_wrapped(
        "an asynchronous schedule computes other numbers than one stage; give --tolerance, the "
        "largest accepted difference\n");
}

ExitCode verify(const VerifyArguments& arguments, const CommonFlags& flags) {
  Place place;
  storage::MemoryFiles files, other_files;
  config::Loaded loaded, other_loaded;
  auto configured = train(place, arguments, {}, files, loaded);
  if (!configured) return complain(ExitCode::invalid, configured.error().text);
  auto plain = train(place, arguments, as_one_stage, other_files, other_loaded);
  if (!plain) return complain(ExitCode::invalid, plain.error().text);
  const auto difference = compare(configured->weights, plain->weights);
  const bool good = arguments.tolerance ? difference.largest <= *arguments.tolerance
                                        : configured->asynchronous || difference.bits == 0;
  print(arguments, flags, *configured, difference, good);
  configured->weights.clear();
  plain->weights.clear();
  return good ? ExitCode::done : ExitCode::failed;
}

}  // namespace

void add_verify(Program& program) {
  auto [command, arguments] = add_command(program, program.app, "verify",
                                          "check that a pipeline trains as one stage does", verify);
  command
      ->add_option("config", arguments.config,
                   "configuration: a .toml or .json file; - reads JSON from stdin")
      ->required();
  command
      ->add_option("--set", arguments.settings,
                   "key=value: set a key of the configuration; can be repeated")
      ->allow_extra_args(false);
  command->add_option("--steps", arguments.steps, "training steps to compare (default: 5)")
      ->check(CLI::Range(1, 1000000));
  command
      ->add_option("--tolerance", arguments.tolerance,
                   "largest accepted difference; synchronous schedules must have none")
      ->check(not_negative());
}

}  // namespace troupe::apps
