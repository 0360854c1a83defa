#include <atomic>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "apps/command.h"
#include "apps/events/number_text.h"
#include "apps/events/sinks.h"
#include "apps/machine/exit_now.h"
#include "apps/machine/notify_arguments.h"
#include "apps/machine/print_stacks.h"
#include "apps/machine/signals.h"
#include "apps/machine/this_machine.h"
#include "apps/node/local_nodes.h"
#include "apps/real/read_host.h"
#include "apps/real/real_processes.h"
#include "apps/run/run_record.h"
#include "apps/run/run_session.h"
#include "apps/run/run_setup.h"
#include "apps/telemetry/otlp_arguments.h"
#include "config/load.h"
#include "config/pages/render.h"
#include "core/threads/real_env.h"
#include "core/units.h"
#include "storage/files/files.h"
#include "transport/real_network.h"

namespace troupe::apps {
namespace {

struct TrainArguments {
  std::string config;
  std::vector<std::string> settings;
  int nodes = 0;  // 0: all devices are in this process.
  std::string carrier = "auto";
  bool resume = false;
  bool from_scratch = false;
  std::int64_t extend = 0;
  NotifyArguments notify;
  OtlpArguments otlp;
};

/// Returns the command that resumes the run.
std::string resume_command(const TrainArguments& arguments) {
  std::string command = "troupe train " + arguments.config;
  for (const auto& setting : arguments.settings) command += " --set '" + setting + "'";
  return command + " --resume";
}

SinkOptions sinks_of(const config::RunConfig& config, const CommonFlags& flags) {
  return {.file = "runs/" + config.name + "/events.jsonl",
          .display = display_for(flags),
          .log_every = config.log.every,
          .total_steps = config.train.steps};
}

/// Prints a summary of the run before its first step.
void introduce(Recorder& recorder, const config::RunConfig& config, const RunSetup& setup,
               const ProcessRun& run) {
  recorder.say("model: " + config.model.kind + ", " + std::to_string(setup.model.units.size()) +
               " units, " + count_text(static_cast<double>(setup.parameters())) +
               " parameters in " +
               (setup.precision == kernels::Precision::fp32
                    ? "fp32"
                    : "fp32, products in " + std::string(to_string(setup.precision))));
  recorder.say("data: " + setup.train->description());
  recorder.say("batch: " + std::to_string(config.batch.global) + " samples in " +
               std::to_string(config.batch.global / setup.micro) + " micro-batches of " +
               std::to_string(setup.micro));
  if (run.step() > 0) recorder.say("resuming after step " + std::to_string(run.step()));
}

/// Describes the plan, and the units of each stage if there are several.
std::string place_of_stages(const ProcessRun& run) {
  const auto& plan = run.plan();
  std::string text = "plan: " + plan.schedule + ", " + std::to_string(plan.stages.size()) +
                     (plan.stages.size() == 1 ? " stage" : " stages");
  const int devices = run.rounds().of_one_step()->devices();
  text += " on " + std::to_string(devices) + (devices == 1 ? " device" : " devices");
  if (plan.replicas.size() > 1) text += ", " + std::to_string(plan.replicas.size()) + " replicas";
  if (plan.stages.size() > 1) {
    text += "; units";
    for (const auto& stage : plan.stages)
      text += " " + std::to_string(stage.first) + ".." + std::to_string(stage.last - 1);
  }
  if (run.rounds().asynchronous())
    text += "; evaluations and saves wait for a drain of the pipeline, every " +
            counted(run.rounds().steps(), "step");
  return text;
}

void conclude(Recorder& recorder, const config::RunConfig& config, const RunSetup& setup,
              double recent_loss) {
  // A process that had no step to do has no loss.
  if (const auto entropy = setup.train->entropy_rate(); entropy && recent_loss > 0) {
    char text[200];
    std::snprintf(text, sizeof text,
                  "loss of the last steps: %.4f nats; the source's entropy rate of %.4f nats is "
                  "the lower bound (%+.1f %%)",
                  recent_loss, *entropy, 100 * (recent_loss / *entropy - 1));
    recorder.say(text);
  }
  if (config.train.export_path)
    recorder.say("weights: " + std::filesystem::absolute(*config.train.export_path).string());
  recorder.say("checkpoints: " + config.checkpoint.directory + "   events: runs/" + config.name +
               "/events.jsonl");
}

ExitCode code_of(const actors::Outcome& outcome) {
  switch (outcome.how) {
    case actors::Outcome::How::done:
      return ExitCode::done;
    case actors::Outcome::How::stopped:
      return ExitCode::preempted;
    case actors::Outcome::How::failed:
      return ExitCode::failed;
  }
  return ExitCode::failed;
}

void tell_failed(Recorder& recorder, const config::RunConfig& config,
                 const TrainArguments& arguments, const std::string& why) {
  recorder.record(state_event(config, "failed", why));
  recorder.say("the checkpoints that are listed by `troupe checkpoint ls " +
               config.checkpoint.directory + "` are good");
  recorder.say("to resume from the newest: " + resume_command(arguments));
}

void tell_ending(Recorder& recorder, const config::RunConfig& config, const ProcessRun& run,
                 const TrainArguments& arguments, const actors::Outcome& outcome) {
  switch (outcome.how) {
    case actors::Outcome::How::done:
      recorder.record(ended_event(config, "done", outcome.why, outcome.skipped_steps));
      return conclude(recorder, config, run.setup(), outcome.recent_loss);
    case actors::Outcome::How::stopped:
      recorder.record(ended_event(config, "stopped",
                                  "after step " + std::to_string(outcome.step) + ", which is saved",
                                  outcome.skipped_steps));
      return recorder.say("to resume: " + resume_command(arguments));
    case actors::Outcome::How::failed:
      return tell_failed(recorder, config, arguments, outcome.why);
  }
}

/// Returns the final message for the case that no recorder can print it.
std::string last_words(const TrainArguments& arguments, const std::string& how) {
  return "run " + how + "\nto resume from its newest checkpoint: " + resume_command(arguments) +
         "\n";
}

/// Ends a run that gives no sign of life. Its recorder may be gone or stuck, so this opens another
/// one.
[[noreturn]] void leave_stuck(const TrainArguments& arguments, const CommonFlags& flags,
                              const config::RunConfig& config, const std::string& last) {
  const auto why = [&] {
    return "no progress for " + duration_text(config.limits.head_patience) +
           " (limits.head_patience); last known activity: " + last;
  };
  exit_now(
      ExitCode::failed,
      [&] {
        const auto files = storage::disk_files();
        RealEnv env;
        auto recorder = open_recorder(env, *files, sinks_of(config, flags));
        if (recorder) tell_failed(**recorder, config, arguments, why());
      },
      [&] { return last_words(arguments, config.name + ": failed: " + why()); });
}

Result<std::unique_ptr<LocalNodes>> start_nodes(const LocalNodes::Context& context, int cores,
                                                const TrainArguments& arguments,
                                                RunSession& session) {
  const auto& config = session.config();
  actors::RemoteOrder order = session.order(session.loaded());
  order.decided = [&recorder = session.recorder(),
                   &config = session.config()](const actors::decide::Answer& answer) {
    recorder.record(decision_event(config, answer));
  };
  order.placed = [&recorder = session.recorder()](const actors::Lineup& lineup) {
    recorder.say("nodes: " + to_text(lineup));
  };
  if (arguments.carrier == "tcp") order.carriers = actors::Carriers::tcp;
  const int devices = devices_wanted(config);
  return LocalNodes::start(
      context, {arguments.nodes, (devices + arguments.nodes - 1) / arguments.nodes, cores},
      std::move(order), {config.limits.silence_floor, config.limits.reconnect_patience});
}

/// Returns the configuration. With --extend it adds settings to the arguments, so that the commands
/// that are printed later do not extend the run once more.
Result<config::Loaded> load(storage::Files& files, TrainArguments& arguments) {
  auto loaded = config::load({arguments.config, arguments.settings});
  if (!loaded || arguments.extend == 0) return loaded;
  const auto keys = keys_to_extend(files, "runs/" + loaded->config.name, arguments.extend);
  if (!keys) return within("--extend", keys.error());
  for (const auto& key : *keys)
    arguments.settings.push_back(key.name + "=" + std::to_string(key.value));
  return config::load({arguments.config, arguments.settings});
}

ExitCode train(const TrainArguments& given, const CommonFlags& flags) {
  TrainArguments arguments = given;
  const auto disk = storage::disk_files();
  auto loaded = load(*disk, arguments);
  if (!loaded) return complain(ExitCode::invalid, loaded.error().text);
  if (!loaded->warnings.empty()) std::fputs(loaded->warnings.c_str(), stderr);
  if (arguments.nodes < 0)
    return complain(ExitCode::invalid,
                    "error: --nodes " + std::to_string(arguments.nodes) + ": wanted 1 or more");
  const auto say = [&flags](const std::string& text) {
    if (!flags.quiet) std::fprintf(stderr, "%s\n", text.c_str());
  };
  // These outlive the session, whose watchdog would not let them wait.
  const auto notifier = open_notifier(arguments.notify, say);
  if (!notifier) return complain(ExitCode::usage, "error: " + notifier.error().text);
  const auto host = read_host();
  const auto otlp = open_otlp(arguments.otlp, host.host, say);
  if (!otlp) return complain(ExitCode::usage, "error: " + otlp.error().text);
  RealEnv env;
  print_stacks_on_quit();
  EventFd bell;
  actors::RealExecutors executors;
  std::atomic<std::optional<ExitCode>> told;  // How the run ended, once the user knows.
  RunSession session({env, host, *disk, *disk}, std::move(*loaded),
                     !arguments.resume        ? RunStart::anew
                     : arguments.from_scratch ? RunStart::resume_or_scratch
                                              : RunStart::resume,
                     [&](const std::string& last) {
                       if (const auto code = told.load())
                         exit_now(
                             *code, [] {}, [] { return std::string(); });
                       leave_stuck(arguments, flags, session.config(), last);
                     });
  // Their threads end while the watchdog of the session still looks.
  std::optional<transport::RealNetwork> network;  // Made for a run on nodes,
  std::optional<RealProcesses> processes;         // and so are these.
  actors::caf_shim::RealSystem system;
  const auto& config = session.config();
  auto setup = set_up(*disk, config);
  if (!setup) return invalid(setup.error());
  if (auto taken = session.take_earlier(); !taken) return invalid(taken.error());
  const bool others_play = arguments.nodes > 0;
  const DevicesHere here{.executors = executors,
                         .are_here = [others_play](int) { return !others_play; },
                         .cores = host.cores,
                         .slowness = measure_slowness};
  if (auto planned = session.plan(std::move(*setup), {.others_play = others_play}, here); !planned)
    return invalid(planned.error());
  auto begun = session.enter();
  SinkOptions sinks = sinks_of(config, flags);
  sinks.notify = [&notifier = *notifier, &otlp = *otlp](const Value& event) {
    if (notifier) notifier->tell(event);
    if (otlp) otlp->tell(event);
  };
  if (begun) begun = session.open_events(std::move(sinks));
  if (!begun) return complain(ExitCode::failed, "error: " + begun.error().text);
  Recorder& recorder = session.recorder();
  if (const auto& moved = session.place().moved; !moved.empty())
    recorder.say("the earlier run of this name was moved to " + moved);
  const auto undescribed = session.describe();
  for (const auto* warnings : {&session.warnings(), &undescribed})
    for (const auto& warning : *warnings) recorder.record(warning_event(config, warning));
  ring_on_signals(bell);
  const ProcessRun& run = session.run();
  introduce(recorder, config, run.setup(), run);
  recorder.say(place_of_stages(run));
  recorder.record(state_event(config, "running", {}));
  std::unique_ptr<LocalNodes> nodes;
  if (others_play) {
    auto started =
        start_nodes({env, network.emplace(), processes.emplace()}, host.cores, arguments, session);
    if (!started) return complain(ExitCode::failed, "error: " + started.error().text);
    nodes = std::move(*started);
  }
  auto outcome = session.play_here(
      bell, system, [&](const Value& event) { recorder.record(event); },
      nodes ? &nodes->player_host() : nullptr,
      [&] {
        recorder.say("stopping: " + config.name +
                     " finishes its step and saves; a second Ctrl-C ends it at once, unsaved");
      },
      [&, now = session.loaded()](std::int64_t step) mutable -> Result<actors::RunSpecPtr> {
        auto changed = config::leave_out_step(now, step);
        if (auto kept = session.keep(changed); !kept) return kept.error();
        now = std::move(changed);
        if (nodes) nodes->change(session.order(now).config);
        return Result(session.run().changed(now));
      });
  session.watchdog().sign("it tells how it ended");
  session.export_weights(outcome);
  const ExitCode code = code_of(outcome);
  const auto tell = [&] { tell_ending(recorder, config, run, arguments, outcome); };
  if (!outcome.all_gone)
    exit_now(
        code,
        [&] {
          tell();
          if (*otlp) (*otlp)->finish();
          if (*notifier) (*notifier)->finish();
        },
        [&] {
          const bool failed = outcome.how == actors::Outcome::How::failed;
          return last_words(arguments, config.name + (failed ? ": failed: " : ": ") + outcome.why);
        });
  tell();
  told = code;
  return code;
}

}  // namespace

void add_train(Program& program) {
  auto [command, arguments] = add_command(program, program.app, "train", "train a model", train);
  command
      ->add_option("config", arguments.config,
                   "configuration: a .toml or .json file; - reads JSON from stdin")
      ->required();
  command
      ->add_option("--set", arguments.settings,
                   "key=value: set a key of the configuration; can be repeated")
      ->allow_extra_args(false);
  command->add_option("--nodes", arguments.nodes,
                      "number of local node processes (default: train in this process)");
  arguments.notify.add_to(*command);
  arguments.otlp.add_to(*command);
  command
      ->add_option("--carrier", arguments.carrier,
                   "transport between node processes: auto (shared memory) or tcp (default: auto)")
      ->check(CLI::IsMember({"auto", "tcp"}));
  CLI::Option* resume =
      command->add_flag("--resume", arguments.resume, "resume from the newest good checkpoint");
  command
      ->add_option("--extend", arguments.extend,
                   "with --resume: train this many steps beyond the run's last one (default: 0)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->needs(resume);
  command
      ->add_flag("--from-scratch", arguments.from_scratch,
                 "with --resume: begin at step 0 if the run's saved checkpoints are gone")
      ->needs(resume);
}

}  // namespace troupe::apps
