#include "apps/machine/notifier.h"

#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "apps/events/event.h"
#include "apps/program.h"
#include "catch.h"
#include "core/json.h"
#include "core/threads/event_fd.h"

using namespace troupe;
using namespace troupe::apps;
using namespace troupe::tests;

namespace {

using namespace std::chrono_literals;

Value state(const std::string& name) {
  Value value = event("run.state", "r");
  value.set("state", name);
  return value;
}

/// The lines that a notifier says. Read them after the notifier has finished.
struct Said {
  std::vector<std::string> lines;
  EventFd bell;  // Rings with each line.
  std::function<void(const std::string&)> say() {
    return [this](const std::string& line) {
      lines.push_back(line);
      bell.ring();
    };
  }
};

Notification parsed(const std::string& command, const std::string& on) {
  const auto notification = Notification::parse({command, on});
  REQUIRE(notification);
  return *notification;
}

}  // namespace

TEST_CASE("a command gets the events that were asked for, one after another", "[apps]") {
  const Workplace here;
  Said said;
  const std::string file = (here.path() / "told").string();
  Notifier notifier(parsed("tee -a " + file, "done,warn,evaluated"), said.say());
  notifier.tell(state("running"));
  notifier.tell(event("step", "r"));
  notifier.tell(event("warn", "r"));
  notifier.tell(event("run.recovered", "r"));
  notifier.tell(event("eval", "r"));
  notifier.tell(state("failed"));
  notifier.tell(state("done"));
  notifier.finish();
  notifier.tell(state("done"));
  CHECK(said.lines.empty());
  CHECK(here.read("told") == to_json(event("warn", "r")) + "\n" + to_json(event("eval", "r")) +
                                 "\n" + to_json(state("done")) + "\n");
}

TEST_CASE("a command that fails is told, and no shell reads it", "[apps]") {
  const auto told_by = [](const std::string& command, std::chrono::milliseconds limit = 1min) {
    Said said;
    Notifier notifier(parsed(command, "done"), said.say(), limit);
    notifier.tell(state("done"));
    said.bell.wait();
    notifier.finish();
    return said.lines;
  };
  using Lines = std::vector<std::string>;
  CHECK(told_by("/nowhere/at-all --now") ==
        Lines{"notify: /nowhere/at-all: cannot be started: No such file or directory"});
  CHECK(told_by("false") == Lines{"notify: false: ended with code 1"});
  CHECK(told_by("test $HOME = $HOME;") == Lines{"notify: test: ended with code 1"});
  CHECK(told_by("tail -f /dev/null", 50ms) ==
        Lines{"notify: tail: was killed, because it did not end in time"});
}

TEST_CASE("events that a slow command cannot take are dropped and counted", "[apps]") {
  const Workplace here;
  const std::string pipe = (here.path() / "pipe").string();
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  Said said;
  Notifier notifier(parsed("cat " + pipe, "warn"), said.say(), 200ms);
  constexpr int events = 1000;
  for (int i = 0; i < events; ++i) notifier.tell(event("warn", "r"));
  notifier.finish();
  // Each event was dropped, or its command was killed.
  int dropped = 0, killed = 0;
  for (const auto& line : said.lines) {
    int count = 0;
    if (std::sscanf(line.c_str(), "notify: %d event", &count) == 1)
      dropped += count;
    else
      killed += line == "notify: cat: was killed, because it did not end in time";
  }
  CAPTURE(said.lines.back());
  CHECK(killed > 0);
  CHECK(dropped + killed == events);
  CHECK(said.lines.back().ends_with(" dropped at the end"));
}

TEST_CASE("an option for notifications names its mistakes", "[apps]") {
  CHECK(Notification::parse({" ", "done"}).error().text ==
        "--notify: found no command; wanted a program and its arguments");
  CHECK(Notification::parse({"mail", "done,step"}).error().text ==
        "--notify-on: there is no kind of event 'step'; wanted some of done, failed, stopped, "
        "recovered, warn, evaluated, separated by commas");
}

TEST_CASE("troupe train tells a command how the run went", "[apps]") {
  const Workplace here;
  const auto ended =
      tests::troupe(here, {"train", TROUPE_TESTS "/../config/quickstart.toml", "--set",
                           "train.steps=4", "--set", "train.eval_every=2", "--set", "name=r",
                           "--notify", "tee -a told", "--notify-on", "done,evaluated"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  std::vector<std::string> told;
  std::istringstream lines(here.read("told"));
  for (std::string line; std::getline(lines, line);) {
    const auto value = parse_json(line);
    REQUIRE(value);
    CHECK(value->find("time")->number() > 1.7e9);
    told.push_back(text_in(*value, "type") + " " + text_in(*value, "run"));
  }
  CHECK(told == std::vector<std::string>{"eval r", "eval r", "run.state r"});
  const auto refused = tests::troupe(
      here, {"train", TROUPE_TESTS "/../config/quickstart.toml", "--notify-on", "done"});
  CHECK(refused.code == 2);
  CHECK(refused.err.find("--notify") != std::string::npos);
}
