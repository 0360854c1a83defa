// Commands that show events of runs as they happen: submit --wait, attach, logs and events.

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "apps/client/client_network.h"
#include "apps/client/event_reader.h"
#include "apps/client/which_head.h"
#include "apps/command.h"
#include "apps/events/sinks.h"
#include "apps/head/head_service.h"
#include "apps/machine/signals.h"
#include "apps/real/read_host.h"
#include "config/load.h"
#include "core/json.h"
#include "transport/wire/fields.h"

namespace troupe::apps {
namespace {

// The interval for polling, which is needed while the subscription is not ready.
constexpr auto look_every = std::chrono::milliseconds(500);
// The time without an answer of the head after which that is said.
constexpr auto first_word = std::chrono::seconds(2);

struct Following {
  WhichHead head;
  std::string run;
  bool follow = false;
};

Result<RunStanding> standing(HeadClient& client, const std::string& run) {
  Value about = Value::Map{};
  about.set("run", run);
  const auto answer = client.ask("run.get", std::move(about));
  if (!answer) return answer.error();
  return transport::from_value<RunStanding>(*answer, "run.get");
}

ExitCode tell_end(const RunStanding& report) {
  if (report.state == "done") return ExitCode::done;
  std::fprintf(stderr, "%s: %s%s\n", report.name.c_str(), report.state.c_str(),
               report.why.empty() ? "" : (": " + report.why).c_str());
  if (report.state == "stopped") return ExitCode::preempted;
  return report.lacks_nodes ? ExitCode::too_few_nodes : ExitCode::failed;
}

/// Handles the end of the head. Before it ends it publishes that its runs have stopped. That event
/// may still be under way, so this waits for it briefly.
ExitCode end_without_head(const Error& error, const EventBell& events, EventFd& bell,
                          RunStanding known) {
  for (int looks = 0; looks < 50 && !events.has_stopped(known.name); ++looks)
    bell.wait_for(std::chrono::milliseconds(10));
  if (!events.has_stopped(known.name)) return no_head(error);
  known.state = "stopped";
  return tell_end(known);
}

enum class From { first_event, this_life, now };

/// Shows a run until it ends, or until a signal rings the bell; then the run continues alone.
ExitCode follow(const WhichHead& head, HeadClient& client, const std::string& run, From from,
                const CommonFlags& flags) {
  const auto options = head.events_of(client);
  if (!options) return no_head(options.error());
  EventFd bell;
  ring_on_signals(bell);
  auto ringing = EventBell::open(*options, bell);
  if (!ringing) return no_head(ringing.error());
  auto known = standing(client, run);
  if (!known) return complain(ExitCode::failed, "error: " + known.error().text);
  RealEnv env;
  const auto recorder = open_display(env, display_of_answer(flags), known->log_every, known->steps);
  EventReader reader(client, run);
  if (from == From::now)
    if (auto read = reader.read([](const Value&) {}); !read) return no_head(read.error());
  const auto show = [&](const Value& event) { recorder->record(event); };
  std::chrono::seconds away{};
  client.tell_waits([&](std::chrono::seconds waited) {
    if (waited == first_word || waited == std::chrono::seconds(30))
      recorder->say("no answer from the head for " + std::to_string(waited.count()) +
                    " s; waiting for it, and " + run + " may go on meanwhile");
    away = waited;
  });
  // A head that ends stops its runs, and may end before it answers.
  client.end_waits_when([&] { return (*ringing)->has_stopped(run); });
  for (; !signal_came(); bell.wait_for(look_every)) {
    if (away >= first_word) recorder->say("the head answers again");
    away = {};
    if ((*ringing)->has_stopped(run)) {
      known->state = "stopped";
      return tell_end(*known);
    }
    auto now = standing(client, run);
    if (!now && signal_came()) break;
    if (!now) return end_without_head(now.error(), **ringing, bell, *known);
    known = std::move(now);
    if (from == From::this_life && known->began >= 0) {
      reader.begin_at(known->began);
      from = From::now;
    }
    // A run publishes its end before the head knows it, so this reads the remaining events.
    if (from != From::this_life)
      if (auto read = reader.read(show); !read && !signal_came())
        return end_without_head(read.error(), **ringing, bell, *known);
    if (known->has_ended()) return tell_end(*known);
  }
  recorder->say("the run continues; `troupe attach " + run + "` follows it again");
  return ExitCode::interrupted;
}

ExitCode attach(const Following& arguments, const CommonFlags& flags) {
  auto client = arguments.head.dial(flags);
  if (!client) return no_head(client.error());
  return follow(arguments.head, **client, arguments.run, From::now, flags);
}

ExitCode logs(const Following& arguments, const CommonFlags& flags) {
  auto client = arguments.head.dial(flags);
  if (!client) return no_head(client.error());
  if (arguments.follow)
    return follow(arguments.head, **client, arguments.run, From::first_event, flags);
  const auto known = standing(**client, arguments.run);
  if (!known) return complain(ExitCode::failed, "error: " + known.error().text);
  RealEnv env;
  const auto recorder = open_display(env, flags.output == "json" ? Display::json : Display::plain,
                                     known->log_every, known->steps);
  EventReader reader(**client, arguments.run);
  const auto read = reader.read([&](const Value& event) { recorder->record(event); });
  return read ? ExitCode::done : no_head(read.error());
}

ExitCode events(const Following& arguments, const CommonFlags& flags) {
  auto client = arguments.head.dial(flags);
  if (!client) return no_head(client.error());
  auto options = arguments.head.events_of(**client);
  if (!options) return no_head(options.error());
  RealEnv env;
  const auto recorder = open_display(env, display_of_answer(flags), 1, 0);
  transport::SubscriberEvents heard;
  heard.event = [&](const transport::Message& event) { recorder->record(event.body); };
  heard.missed = [&](const std::string&, std::uint64_t count) {
    recorder->say(std::to_string(count) + " events were missed");
  };
  bool is_away = false;
  heard.gone = [&](const std::string& why) {
    if (!std::exchange(is_away, true))
      recorder->say("no events from the head: " + why + "; waiting for it");
  };
  heard.connected = [&] {
    if (std::exchange(is_away, false)) recorder->say("the head is back");
  };
  EventFd interrupted;
  ring_on_signals(interrupted);
  ClientNetwork own;
  const auto subscriber = own.network.subscribe(
      std::move(*options), arguments.run.empty() ? "" : arguments.run + "/", heard, *own.loop);
  if (!subscriber) return no_head(subscriber.error());
  if (!flags.quiet)
    std::fprintf(stderr, "following the events of %s; Ctrl-C ends this\n",
                 arguments.run.empty() ? "all runs" : arguments.run.c_str());
  interrupted.wait();
  return ExitCode::done;
}

struct SubmitArguments {
  WhichHead head;
  std::string config;
  std::vector<std::string> settings;
  bool wait = false;
  bool resume = false;
  bool from_scratch = false;
  std::int64_t extend = 0;
};

ExitCode submit(const SubmitArguments& arguments, const CommonFlags& flags) {
  const auto loaded = config::load({arguments.config, arguments.settings});
  if (!loaded) return complain(ExitCode::invalid, loaded.error().text);
  if (!loaded->warnings.empty()) std::fputs(loaded->warnings.c_str(), stderr);
  auto client = arguments.head.dial(flags);
  if (!client) return no_head(client.error());
  Value body = loaded->tree;
  if (arguments.resume) body.set("resume", true);
  if (arguments.from_scratch) body.set("from_scratch", true);
  if (arguments.extend > 0) body.set("extend", arguments.extend);
  // Relative names of files mean files in this folder.
  const auto here = read_host();
  body.set("host", here.host);
  body.set("folder", here.folder);
  const auto answer = (*client)->ask("run.submit", std::move(body));
  if (!answer) return refused(answer.refusal());
  const std::string name = text_of(*answer, "run");
  const std::string moved = text_of(*answer, "moved");
  if (!moved.empty() && !flags.quiet)
    std::fprintf(stderr, "the earlier run of this name was moved to %s\n", moved.c_str());
  const Value* chosen = answer->find("chosen");
  if (chosen && !arguments.wait && !flags.quiet)
    std::fprintf(stderr, "precision %s\n", text_of(*chosen, "why").c_str());
  if (arguments.wait) return follow(arguments.head, **client, name, From::this_life, flags);
  std::printf("%s\n", name.c_str());
  return ExitCode::done;
}

}  // namespace

void add_follow(Program& program) {
  {
    auto [command, arguments] =
        add_command(program, program.app, "submit", "submit a run to a head", submit);
    arguments.head.add_to(*command);
    command->add_option("config", arguments.config, "configuration file; - reads JSON from stdin")
        ->required();
    command->add_option("--set", arguments.settings,
                        "key=value: override a key of the file; can be repeated");
    command->add_flag("--wait", arguments.wait,
                      "show the run and exit with its exit code; Ctrl-C detaches");
    CLI::Option* resume =
        command->add_flag("--resume", arguments.resume, "resume from the run's newest checkpoint");
    command
        ->add_flag("--from-scratch", arguments.from_scratch,
                   "with --resume: begin at step 0 if the run's saved checkpoints are gone")
        ->needs(resume);
    command
        ->add_option("--extend", arguments.extend,
                     "with --resume: train this many steps beyond the run's last one (default: 0)")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
        ->needs(resume);
  }
  const auto about = [&](const std::string& name, const std::string& help, auto run) {
    auto [command, arguments] = add_command(program, program.app, name, help, run);
    arguments.head.add_to(*command);
    return std::pair(command, &arguments);
  };
  {
    auto [command, arguments] =
        about("attach", "show a run until it ends; Ctrl-C detaches", attach);
    command->add_option("run", arguments->run, "the run's name")->required();
  }
  {
    auto [command, arguments] = about("logs", "print a run's log", logs);
    command->add_option("run", arguments->run, "the run's name")->required();
    command->add_flag("-f,--follow", arguments->follow, "keep following until the run ends");
  }
  {
    auto [command, arguments] = about("events", "follow what a head publishes from now on", events);
    command->add_option("run", arguments->run, "only events of this run");
    command->add_flag("-f,--follow", arguments->follow, "follow until interrupted (the default)");
  }
}

}  // namespace troupe::apps
