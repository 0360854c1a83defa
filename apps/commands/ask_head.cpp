// Commands that ask a head or give it orders: runs, status, nodes, stop, pause, resume, set, chaos.

#include <chrono>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "apps/client/head_tables.h"
#include "apps/client/links_text.h"
#include "apps/client/stacks_text.h"
#include "apps/client/which_head.h"
#include "apps/command.h"
#include "core/json.h"
#include "core/units.h"

namespace troupe::apps {
namespace {

struct Asked {
  WhichHead head;
  bool local = false;
};

void print_runs(const Value& answer) {
  std::fputs(runs_table(answer, form_of(stdout)).c_str(), stdout);
}
void print_nodes(const Value& answer) {
  std::fputs(nodes_table(answer, form_of(stdout)).c_str(), stdout);
}

ExitCode runs(const Asked& asked, const CommonFlags& flags) {
  if (asked.local) return list_local_runs(flags);
  return ask(asked.head, "run.list", Value::Map{}, flags, print_runs);
}
ExitCode status(const Asked& asked, const CommonFlags& flags) {
  return ask(asked.head, "status", Value::Map{}, flags, [](const Value& answer) {
    print_nodes(answer);
    print_runs(answer);
  });
}

const Value::List& list_of(const Value& answer, const char* key) {
  static const Value::List none;
  const Value* list = answer.find(key);
  return list && list->list() ? *list->list() : none;
}

struct NodesArguments {
  WhichHead head;
  std::string order;
  std::string node;
};

/// Ends a node, or all nodes, and waits until they are gone.
ExitCode end_nodes(const NodesArguments& arguments, const CommonFlags& flags) {
  constexpr auto patience = std::chrono::seconds(60);
  constexpr auto look_every = std::chrono::milliseconds(100);
  auto client = arguments.head.dial(flags);
  if (!client) return no_head(client.error());
  Value body = Value::Map{};
  if (!arguments.node.empty()) body.set("node", arguments.node);
  const auto asked = (*client)->ask("node.end", std::move(body));
  if (!asked) return refused(asked.refusal());
  std::set<std::string> names;
  for (const auto& name : list_of(*asked, "nodes"))
    if (name.text()) names.insert(*name.text());
  const auto end = std::chrono::steady_clock::now() + patience;
  for (auto left = names; !left.empty(); std::this_thread::sleep_for(look_every)) {
    const auto there = (*client)->ask("node.list", Value::Map{});
    if (!there) return refused(there.refusal());
    left.clear();
    for (const auto& node : list_of(*there, "nodes"))
      if (names.contains(text_in(node, "name"))) left.insert(text_in(node, "name"));
    if (!left.empty() && std::chrono::steady_clock::now() >= end)
      return complain(ExitCode::failed, "error: " + *left.begin() + " and " +
                                            std::to_string(left.size() - 1) +
                                            " more nodes did not stop within " +
                                            std::to_string(patience.count()) + " s");
  }
  if (flags.output == "json")
    std::puts(to_json(*asked).c_str());
  else if (!flags.quiet)
    for (const auto& name : names) std::printf("%s has ended\n", name.c_str());
  return ExitCode::done;
}

ExitCode nodes(const NodesArguments& arguments, const CommonFlags& flags) {
  if (arguments.order.empty())
    return ask(arguments.head, "node.list", Value::Map{}, flags, print_nodes);
  if (arguments.order == "end") return end_nodes(arguments, flags);
  if (arguments.node.empty())
    return complain(ExitCode::usage,
                    "error: no node was named; use `troupe nodes " + arguments.order + " NAME`");
  Value body = Value::Map{};
  body.set("node", arguments.node);
  using transport::MessageName;
  const auto type = arguments.order == "drain"    ? MessageName("node.drain")
                    : arguments.order == "cordon" ? MessageName("node.cordon")
                                                  : MessageName("node.uncordon");
  return ask(arguments.head, type, std::move(body), flags, [&](const Value&) {
    const std::string& order = arguments.order;
    const std::string now = order == "drain"    ? "is free of runs and gets no new work"
                            : order == "cordon" ? "gets no new work"
                                                : "may get work again";
    std::printf("%s %s\n", arguments.node.c_str(), now.c_str());
  });
}

struct AboutRun {
  WhichHead head;
  std::string run;
  bool now = false;
};

/// Gives an order. `reached` is the state of a run that has obeyed; `doing` says what happens until
/// then, since the head answers at once.
ExitCode about_run(const AboutRun& asked, const CommonFlags& flags, transport::MessageName type,
                   const std::string& reached, const std::string& doing) {
  Value body = Value::Map{};
  body.set("run", asked.run);
  if (type.view() == "run.stop") body.set("mode", asked.now ? "now" : "drain");
  return ask(asked.head, type, std::move(body), flags, [&](const Value& run) {
    const std::string state = text_of(run, "state");
    std::printf("%s: %s; step %s of %s is done\n", text_of(run, "name").c_str(),
                (state == reached ? state : doing).c_str(), text_of(run, "step").c_str(),
                text_of(run, "steps").c_str());
  });
}
ExitCode stop(const AboutRun& asked, const CommonFlags& flags) {
  return about_run(asked, flags, "run.stop", "stopped",
                   asked.now ? "stopping at once" : "stopping after the steps under way");
}
ExitCode pause(const AboutRun& asked, const CommonFlags& flags) {
  // The head calls a run paused from the order on.
  return about_run(asked, flags, "run.pause", "", "pausing after the steps under way");
}
ExitCode resume(const AboutRun& asked, const CommonFlags& flags) {
  return about_run(asked, flags, "run.resume", "running", "continuing");
}

struct StacksArguments {
  WhichHead head;
  std::string run;
  std::string node;
  std::optional<std::int64_t> stage;
  std::size_t frames = 12;
};

ExitCode stacks(const StacksArguments& arguments, const CommonFlags& flags) {
  if (arguments.run.empty() == arguments.node.empty())
    return complain(ExitCode::usage,
                    "error: wanted either a run or --node NAME; use `troupe stacks RUN`");
  auto client = arguments.head.dial(flags);
  if (!client) return no_head(client.error());
  Value body = Value::Map{};
  if (!arguments.run.empty()) body.set("run", arguments.run);
  if (!arguments.node.empty()) body.set("node", arguments.node);
  if (arguments.stage) body.set("stage", *arguments.stage);
  const auto answer = (*client)->ask("stacks", std::move(body));
  if (!answer) return refused(answer.refusal());
  const auto text =
      flags.output == "json" ? to_json(*answer) + "\n" : stacks_text(*answer, arguments.frames);
  std::fputs(text.c_str(), stdout);
  const auto silent = silent_processes(*answer);
  for (const auto& who : silent) complain(ExitCode::failed, "error: " + who);
  return silent.empty() ? ExitCode::done : ExitCode::failed;
}

struct ProbeArguments {
  WhichHead head;
  std::string run;
};

ExitCode probe(const ProbeArguments& arguments, const CommonFlags& flags) {
  Value body = Value::Map{};
  if (!arguments.run.empty()) body.set("run", arguments.run);
  return ask(arguments.head, "probe", std::move(body), flags,
             [](const Value& answer) { std::fputs(links_text(answer).c_str(), stdout); });
}

struct SetArguments {
  WhichHead head;
  std::string run;
  std::string setting;
  std::optional<std::int64_t> from;
};

ExitCode set(const SetArguments& arguments, const CommonFlags& flags) {
  Value body = Value::Map{};
  body.set("run", arguments.run);
  body.set("set", arguments.setting);
  if (arguments.from) body.set("from", *arguments.from);
  return ask(arguments.head, "run.set", std::move(body), flags, [&](const Value& answer) {
    const auto step = arguments.from ? std::to_string(*arguments.from) : text_of(answer, "step");
    std::printf("%s: %s after step %s\n", arguments.run.c_str(), arguments.setting.c_str(),
                step.c_str());
  });
}

struct ChaosArguments {
  WhichHead head;
  std::string what;
  std::string target;
  std::string time = "5s";
  double times = 4;
};

ExitCode chaos(const ChaosArguments& arguments, const CommonFlags& flags) {
  const auto time = parse_duration(arguments.time);
  if (!time) return complain(ExitCode::usage, "error: --for: " + time.error().text);
  Value body = Value::Map{};
  body.set("what", arguments.what);
  body.set("target", arguments.target);
  body.set("seconds", in_seconds(*time));
  body.set("times", arguments.times);
  return ask(arguments.head, "chaos", std::move(body), flags, [&](const Value&) {
    std::printf("%s: %s\n", arguments.target.c_str(), arguments.what.c_str());
  });
}

}  // namespace

void add_ask_head(Program& program) {
  {
    auto [command, arguments] = add_command(program, program.app, "runs",
                                            "list the runs of a head, or of this folder", runs);
    arguments.head.add_to(*command);
    command->add_flag("--local", arguments.local,
                      "list the runs in the working folder; asks no head");
  }
  {
    auto [command, arguments] =
        add_command(program, program.app, "status", "list the nodes and runs of a head", status);
    arguments.head.add_to(*command);
  }
  {
    auto [command, arguments] =
        add_command(program, program.app, "nodes", "list the nodes of a head", nodes);
    arguments.head.add_to(*command);
    command
        ->add_option("order", arguments.order,
                     "drain: move its work away; cordon: give it no new work; uncordon; end: leave "
                     "its runs and exit")
        ->check(CLI::IsMember({"drain", "cordon", "uncordon", "end"}));
    command->add_option("node", arguments.node,
                        "the node's name; `end` without a name ends all nodes");
  }
  {
    auto [command, arguments] = add_command(
        program, program.app, "stacks", "show where the threads of a run or a node are", stacks);
    arguments.head.add_to(*command);
    command->add_option("run", arguments.run, "the run's name");
    command->add_option("--node", arguments.node, "a node, instead of a run");
    command->add_option("--stage", arguments.stage,
                        "only the threads that compute for this stage of the run");
    command->add_option("--frames", arguments.frames,
                        "functions of each thread, the innermost ones (default: 12)");
  }
  {
    auto [command, arguments] =
        add_command(program, program.app, "probe",
                    "measure the ways between the nodes of a run, or between all nodes", probe);
    arguments.head.add_to(*command);
    command->add_option("run", arguments.run, "the run's name (default: all nodes)");
  }
  const auto about = [&](const std::string& name, const std::string& help, auto run) {
    auto [command, arguments] = add_command(program, program.app, name, help, run);
    arguments.head.add_to(*command);
    command->add_option("run", arguments.run, "the run's name")->required();
    if (name == "stop")
      command->add_flag("--now", arguments.now, "stop at once, without finishing the step");
  };
  about("stop", "stop a run: finish its step and save a checkpoint", stop);
  about("pause", "pause a run after its current step", pause);
  about("resume", "continue a paused run", resume);
  {
    auto [command, arguments] = add_command(
        program, program.app, "set", "change a live key of a run, such as optimizer.lr", set);
    arguments.head.add_to(*command);
    command->add_option("run", arguments.run, "the run's name")->required();
    command->add_option("setting", arguments.setting, "key=value")->required();
    command->add_option("--from", arguments.from, "take effect at this step (default: next)");
  }
  {
    auto [command, arguments] =
        add_command(program, program.app, "chaos", "inject a fault into a node or a run", chaos);
    arguments.head.add_to(*command);
    command
        ->add_option("what", arguments.what,
                     "fault: kill, stop, slow or partition a node, or disk-full for a run")
        ->required()
        ->check(CLI::IsMember({"kill", "stop", "slow", "partition", "disk-full"}));
    command->add_option("target", arguments.target, "the node, or the run whose disk appears full")
        ->required();
    command->add_option("--for", arguments.time, "duration of the fault (default: 5s)");
    command->add_option("--times", arguments.times, "slowdown factor (default: 4)");
  }
}

}  // namespace troupe::apps
