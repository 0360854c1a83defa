// What people ask a head: submit, runs, status, nodes, stop, pause, resume, events.

#include <cassert>
#include <cstdio>

#include "apps/command.h"
#include "apps/head_address.h"
#include "apps/head_client.h"
#include "apps/head_service.h"
#include "apps/recorder.h"
#include "apps/signals.h"
#include "apps/wire_keys.h"
#include "config/load.h"
#include "core/json.h"
#include "transport/fields.h"
#include "transport/publisher.h"

namespace troupe::apps {
namespace {

/// The head that is meant, and how to speak to it.
struct WhichHead {
  std::string address;
  DialKeys keys;

  void add_to(CLI::App& command) {
    command.add_option("--head", address,
                       "where the head listens (TROUPE_HEAD, or the last one here)");
    keys.add_to(command);
  }
  Result<transport::DialOptions> dial() const {
    const auto endpoint = find_head(address);
    if (!endpoint) return endpoint.error();
    return keys.dial(*endpoint);
  }
};

struct Asked {
  WhichHead head;
};

Result<std::unique_ptr<HeadClient>> dial(const WhichHead& head) {
  const auto options = head.dial();
  if (!options) return options.error();
  return HeadClient::dial(*options);
}

ExitCode no_head(const Error& error) { return complain(ExitCode::no_head, "error: " + error.text); }

void print(const Value& answer, const CommonFlags& flags, const std::function<void()>& plainly) {
  if (flags.output == "json")
    std::puts(to_json(answer).c_str());
  else
    plainly();
}

std::string text_of(const Value& value, const char* key) {
  const Value* found = value.find(key);
  if (!found) return "";
  if (found->text()) return *found->text();
  return to_json(*found);
}

void print_runs(const Value& answer) {
  const Value* runs = answer.find("runs");
  if (!runs || !runs->list() || runs->list()->empty()) {
    std::puts("no runs");
    return;
  }
  std::printf("%-24s %-10s %12s %10s  %s\n", "run", "state", "step", "loss", "where");
  for (const auto& run : *runs->list())
    std::printf(
        "%-24s %-10s %6s/%-5s %10.4f  %s\n", text_of(run, "name").c_str(),
        text_of(run, "state").c_str(), text_of(run, "step").c_str(), text_of(run, "steps").c_str(),
        run.find("loss") ? run.find("loss")->number() : 0.0,
        (text_of(run, "why").empty() ? text_of(run, "where") : text_of(run, "why")).c_str());
}

void print_nodes(const Value& answer) {
  const Value* nodes = answer.find("nodes");
  if (!nodes || !nodes->list() || nodes->list()->empty()) {
    std::puts("no nodes");
    return;
  }
  std::printf("%-20s %-20s %8s %6s %10s %s\n", "node", "host", "pid", "cores", "memory", "");
  for (const auto& node : *nodes->list()) {
    const Value* memory = node.find("memory");
    std::printf("%-20s %-20s %8s %6s %6.1f GiB %s\n", text_of(node, "name").c_str(),
                text_of(node, "host").c_str(), text_of(node, "pid").c_str(),
                text_of(node, "cores").c_str(), memory ? memory->number() / (1 << 30) : 0.0,
                text_of(node, "cordoned") == "true" ? "cordoned" : "");
  }
}

/// Asks once and prints.
ExitCode ask(const WhichHead& head, const std::string& type, Value body, const CommonFlags& flags,
             const std::function<void(const Value&)>& plainly) {
  auto client = dial(head);
  if (!client) return no_head(client.error());
  const auto answer = (*client)->ask(type, std::move(body));
  if (!answer) return complain(ExitCode::failed, "error: " + answer.error().text);
  print(*answer, flags, [&] { plainly(*answer); });
  return ExitCode::done;
}

ExitCode runs(const Asked& asked, const CommonFlags& flags) {
  return ask(asked.head, "run.list", Value::Map{}, flags, print_runs);
}
ExitCode status(const Asked& asked, const CommonFlags& flags) {
  return ask(asked.head, "status", Value::Map{}, flags, [](const Value& answer) {
    print_nodes(answer);
    print_runs(answer);
  });
}
ExitCode nodes(const Asked& asked, const CommonFlags& flags) {
  return ask(asked.head, "node.list", Value::Map{}, flags, print_nodes);
}

struct AboutRun {
  WhichHead head;
  std::string run;
  bool now = false;
};

ExitCode about_run(const AboutRun& asked, const CommonFlags& flags, const std::string& type) {
  Value body = Value::Map{};
  body.set("run", asked.run);
  if (type == "run.stop") body.set("mode", asked.now ? "now" : "drain");
  return ask(asked.head, type, std::move(body), flags, [](const Value& run) {
    std::printf("%s: %s, step %s of %s\n", text_of(run, "name").c_str(),
                text_of(run, "state").c_str(), text_of(run, "step").c_str(),
                text_of(run, "steps").c_str());
  });
}
ExitCode stop(const AboutRun& asked, const CommonFlags& flags) {
  return about_run(asked, flags, "run.stop");
}
ExitCode pause(const AboutRun& asked, const CommonFlags& flags) {
  return about_run(asked, flags, "run.pause");
}
ExitCode resume(const AboutRun& asked, const CommonFlags& flags) {
  return about_run(asked, flags, "run.resume");
}

/// Shows what a head publishes, until the bell rings.
class Follower {
 public:
  static Result<std::unique_ptr<Follower>> open(transport::DialOptions options,
                                                const std::string& topic, const CommonFlags& flags,
                                                std::int64_t log_every, std::int64_t steps,
                                                Bell& bell) {
    auto follower = std::make_unique<Follower>();
    auto recorder = Recorder::open("/dev/null", Recorder::display_for(flags), log_every, steps);
    if (!recorder) return recorder.error();
    follower->recorder_ = std::move(*recorder);
    transport::SubscriberEvents heard;
    heard.event = [follower = follower.get(), &bell](const transport::Message& event) {
      follower->recorder_->record(event.body);
      const Value* state = event.body.find("state");
      if (event.type == "run.state" && state && state->text() && *state->text() != "running")
        bell.ring();
    };
    heard.missed = [follower = follower.get()](const std::string&, std::uint64_t count) {
      follower->recorder_->say(std::to_string(count) + " events were missed");
    };
    auto subscriber = transport::Subscriber::dial(std::move(options), topic, heard);
    if (!subscriber) return subscriber.error();
    follower->subscriber_ = std::move(*subscriber);
    return follower;
  }

 private:
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<transport::Subscriber> subscriber_;
};

/// The same keys, where events are.
transport::DialOptions events_of(const WhichHead& head, const HeadClient& client) {
  auto options = head.dial();  // It has been dialed so before.
  assert(options);
  options->endpoint = client.events();
  return std::move(*options);
}

struct FollowArguments {
  WhichHead head;
  std::string run;
  bool follow = false;
};

ExitCode events(const FollowArguments& arguments, const CommonFlags& flags) {
  auto client = dial(arguments.head);
  if (!client) return no_head(client.error());
  Bell bell, interrupted;
  ring_on_signals(interrupted);
  const auto topic = arguments.run.empty() ? "" : arguments.run + "/";
  auto follower = Follower::open(events_of(arguments.head, **client), topic, flags, 1, 0, bell);
  if (!follower) return no_head(follower.error());
  interrupted.wait();
  return ExitCode::done;
}

struct SubmitArguments {
  WhichHead head;
  std::string config;
  std::vector<std::string> settings;
  bool wait = false;
  bool resume = false;
};

ExitCode tell_end(const RunStanding& report) {
  if (report.state == "done") return ExitCode::done;
  std::fprintf(stderr, "%s: %s%s\n", report.name.c_str(), report.state.c_str(),
               report.why.empty() ? "" : (": " + report.why).c_str());
  return report.state == "stopped" ? ExitCode::preempted : ExitCode::failed;
}

ExitCode submit(const SubmitArguments& arguments, const CommonFlags& flags) {
  const auto loaded = config::load({arguments.config, arguments.settings});
  if (!loaded) return complain(ExitCode::invalid, loaded.error().text);
  if (!loaded->warnings.empty()) std::fputs(loaded->warnings.c_str(), stderr);
  auto client = dial(arguments.head);
  if (!client) return no_head(client.error());
  Bell bell;
  std::unique_ptr<Follower> follower;
  if (arguments.wait) {
    auto opened = Follower::open(events_of(arguments.head, **client), loaded->config.name + "/",
                                 flags, loaded->config.log.every, loaded->config.train.steps, bell);
    if (!opened) return no_head(opened.error());
    follower = std::move(*opened);
  }
  Value body = loaded->tree;
  if (arguments.resume) body.set("resume", true);
  const auto answer = (*client)->ask("run.submit", std::move(body));
  if (!answer) return complain(ExitCode::invalid, "error: " + answer.error().text);
  const std::string name = text_of(*answer, "run");
  if (!arguments.wait) {
    std::printf("%s\n", name.c_str());
    return ExitCode::done;
  }
  ring_on_signals(bell);
  for (;;) {
    bell.wait_for(std::chrono::seconds(1));
    Value about = Value::Map{};
    about.set("run", name);
    const auto now = (*client)->ask("run.get", std::move(about));
    if (!now) return no_head(now.error());
    const auto report = transport::from_value<RunStanding>(*now, "run.get");
    if (!report) return no_head(report.error());
    if (report->has_ended()) return tell_end(*report);
  }
}

}  // namespace

void add_ask_head(Program& program) {
  {
    auto [command, arguments] =
        add_command(program, program.app, "submit", "give a run to a head", submit);
    arguments.head.add_to(*command);
    command->add_option("config", arguments.config, "a configuration, - for JSON from stdin")
        ->required();
    command->add_option("--set", arguments.settings, "key=value, over the file");
    command->add_flag("--wait", arguments.wait, "show it, and end as it ends");
    command->add_flag("--resume", arguments.resume, "go on from its newest checkpoint");
  }
  {
    auto [command, arguments] =
        add_command(program, program.app, "runs", "the runs of a head", runs);
    arguments.head.add_to(*command);
  }
  {
    auto [command, arguments] =
        add_command(program, program.app, "status", "the nodes and runs of a head", status);
    arguments.head.add_to(*command);
  }
  {
    auto [command, arguments] =
        add_command(program, program.app, "nodes", "the nodes of a head", nodes);
    arguments.head.add_to(*command);
  }
  const auto about = [&](const std::string& name, const std::string& help, auto run) {
    auto [command, arguments] = add_command(program, program.app, name, help, run);
    arguments.head.add_to(*command);
    command->add_option("run", arguments.run, "the run's name")->required();
    if (name == "stop") command->add_flag("--now", arguments.now, "do not finish the step");
  };
  about("stop", "finish a run's step, save it, stop", stop);
  about("pause", "finish a run's step and wait", pause);
  about("resume", "let a paused run go on", resume);
  {
    auto [command, arguments] =
        add_command(program, program.app, "events", "what a head publishes", events);
    arguments.head.add_to(*command);
    command->add_option("run", arguments.run, "of this run alone");
    command->add_flag("-f,--follow", arguments.follow, "until interrupted, which is the default");
  }
}

}  // namespace troupe::apps
