// What people ask a head, and what they tell it: runs, status, nodes, stop, pause, resume, set,
// chaos.

#include <chrono>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "apps/client/head_tables.h"
#include "apps/client/which_head.h"
#include "apps/command.h"
#include "core/json.h"
#include "core/units.h"

namespace troupe::apps {
namespace {

struct Asked {
  WhichHead head;
};

void print_runs(const Value& answer) { std::fputs(runs_table(answer).c_str(), stdout); }
void print_nodes(const Value& answer) { std::fputs(nodes_table(answer).c_str(), stdout); }

ExitCode runs(const Asked& asked, const CommonFlags& flags) {
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

/// Ends a node, or all, and waits until they are no more.
ExitCode end_nodes(const NodesArguments& arguments, const CommonFlags& flags) {
  constexpr auto patience = std::chrono::seconds(60);
  constexpr auto look_every = std::chrono::milliseconds(100);
  auto client = arguments.head.dial();
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
                                            " more nodes have not ended within " +
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
                    "error: which node? `troupe nodes " + arguments.order + " NAME`");
  Value body = Value::Map{};
  body.set("node", arguments.node);
  return ask(arguments.head, "node." + arguments.order, std::move(body), flags, [&](const Value&) {
    const std::string& order = arguments.order;
    const std::string now = order == "drain"    ? "is free of runs and gets nothing new"
                            : order == "cordon" ? "gets nothing new"
                                                : "may be used again";
    std::printf("%s %s\n", arguments.node.c_str(), now.c_str());
  });
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
    command
        ->add_option(
            "order", arguments.order,
            "drain: move its players away; cordon, uncordon; end: it leaves its runs and ends")
        ->check(CLI::IsMember({"drain", "cordon", "uncordon", "end"}));
    command->add_option("node", arguments.node, "its name; `end` without a name ends all");
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
    auto [command, arguments] = add_command(
        program, program.app, "set", "change a live key of a run, such as optimizer.lr", set);
    arguments.head.add_to(*command);
    command->add_option("run", arguments.run, "the run's name")->required();
    command->add_option("setting", arguments.setting, "key=value")->required();
    command->add_option("--from", arguments.from, "after so many steps (as soon as can be)");
  }
  {
    auto [command, arguments] =
        add_command(program, program.app, "chaos", "a drill: do harm to a node or a run", chaos);
    arguments.head.add_to(*command);
    command->add_option("what", arguments.what, "kill, stop, slow, partition; disk-full of a run")
        ->required()
        ->check(CLI::IsMember({"kill", "stop", "slow", "partition", "disk-full"}));
    command->add_option("target", arguments.target, "a node, or the run whose disk is full")
        ->required();
    command->add_option("--for", arguments.time, "for how long (5s)");
    command->add_option("--times", arguments.times, "how many times as slow (4)");
  }
}

}  // namespace troupe::apps
