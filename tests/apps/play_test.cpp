// Scenarios with a head, nodes and runs of their own, over real sockets.

#include <unistd.h>

#include <set>

#include "catch.h"
#include "program.h"
#include "quickstart.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

const std::string scenarios = TROUPE_TESTS "/../config/scenarios/";

/// Returns the shared memory that a process could leave behind.
std::set<std::string> shared_memory() {
  std::set<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", error))
    found.insert(entry.path().string());
  return found;
}

Ended play(const Workplace& here, const std::string& acts) {
  return troupe::tests::troupe(here, {"play", here.write("scenario.toml", acts)});
}

/// Returns a first act that submits a run of `steps` steps.
std::string submitted(const std::string& name, int steps, const std::string& more = "") {
  return "[[act]]\nsubmit = \"" + quickstart + "\"\nset = [\"name=" + name +
         "\", \"batch.global=8\", \"batch.micro=2\", \"train.steps=" + std::to_string(steps) +
         "\"" + (more.empty() ? "" : ", " + more) + "]\n";
}
std::string ends(const std::string& run, const std::string& state) {
  return "expect = { type = \"run.state\", run = \"" + run + "\", state = \"" + state + "\" }\n";
}

}  // namespace

TEST_CASE("the scenarios that we ship succeed", "[apps][cluster]") {
  const auto before = shared_memory();
  for (const std::string name : {"loses-a-node", "pause-and-resume", "drain"}) {
    const Workplace here;
    const Ended played = troupe::tests::troupe(here, {"play", scenarios + name + ".toml"});
    INFO(name << ": " << played.err);
    CHECK(played.code == 0);
    CHECK(played.err.find("all expectations were met") != std::string::npos);
  }
  CHECK(shared_memory() == before);
}

TEST_CASE("an expectation that is not met ends a scenario and is named in the error",
          "[apps][cluster]") {
  const Workplace here;
  const Ended waited = play(
      here, "[cluster]\nnodes = 1\n" + submitted("one", 20) +
                "\n[[act]]\nexpect = { type = \"run.state\", run = \"one\", state = \"failed\" }\n"
                "within = \"5s\"\n");
  INFO(waited.err);
  CHECK(waited.code == 1);
  CHECK(waited.err.find("scenario.toml:7: act 2: found ") != std::string::npos);
  CHECK(waited.err.find("\"state\":\"done\"") != std::string::npos);
  CHECK(waited.err.find("wanted run.state with run = one, state = failed within 5s") !=
        std::string::npos);

  const Ended differ =
      play(here, "[cluster]\nnodes = 1\n" + submitted("one", 20) + ends("one", "done") +
                     submitted("two", 30) + ends("two", "done") +
                     "[[act]]\nsame_weights = [\"one\", \"two\"]\n");
  INFO(differ.err);
  CHECK(differ.code == 1);
  CHECK(differ.err.find("wanted the same") != std::string::npos);

  const Ended refused = play(here,
                             "[cluster]\nnodes = 1\n[[act]]\n"
                             "send = { type = \"run.pause\", run = \"nobody\" }\n");
  CHECK(refused.code == 1);
  CHECK(refused.err.find("run.pause: no run is called 'nobody'") != std::string::npos);

  const Ended code =
      play(here, "[cluster]\nnodes = 1\n[[act]]\ncommand = [\"stop\", \"nobody\"]\n");
  CHECK(code.code == 1);
  CHECK(code.err.find("found exit code 1, wanted 0") != std::string::npos);
}

TEST_CASE("a node that was stopped or cut off rejoins, and the run has the same bits",
          "[apps][cluster]") {
  const Workplace here;
  const std::string often = "\"checkpoint.every=10 steps\"";
  // The run continues without the node, and may end before the node is back.
  const auto comes_back_to = [](const std::string& node, const std::string& run) {
    return "expect = [{ type = \"node.lost\", node = \"" + node +
           "\" }, { type = \"node.joined\", node = \"" + node +
           "\" }, { type = \"run.recovered\", run = \"" + run +
           "\" }, { type = \"run.state\", run = \"" + run + "\", state = \"done\" }]\n" +
           "within = \"30s\"\n";
  };
  const Ended played = play(here, "[cluster]\nnodes = 2\n" + submitted("calm", 60, often) +
                                      ends("calm", "done") + submitted("stopped", 60, often) +
                                      R"([[act]]
when = { type = "step", run = "stopped", step = ">= 20" }
send = { type = "chaos", what = "stop", target = "node-1", seconds = 4 }
)" + comes_back_to("node-1", "stopped") +
                                      "[[act]]\nsame_weights = [\"stopped\", \"calm\"]\n" +
                                      submitted("cut", 60, often) +
                                      R"([[act]]
when = { type = "step", run = "cut", step = ">= 20" }
send = { type = "chaos", what = "partition", target = "node-2", seconds = 2 }
)" + comes_back_to("node-2", "cut") + "[[act]]\nsame_weights = [\"cut\", \"calm\"]\n");
  INFO(played.err);
  CHECK(played.code == 0);
}

TEST_CASE("a run that outlives its scenario is saved", "[apps][cluster]") {
  const Workplace here;
  // The first run waits for a second node, so it has nothing to save.
  const Ended played =
      play(here, "[cluster]\nnodes = 1\n" + submitted("waits", 10, "\"elastic.nodes=2:4\"") +
                     submitted("long", 1'000'000, "\"checkpoint.every=1000000 steps\"") +
                     "expect = { type = \"step\", run = \"long\", step = \">= 3\" }\n");
  INFO(played.err);
  CHECK(played.code == 0);
  const std::string events = here.read("runs/long/events.jsonl");
  INFO(events.substr(events.size() > 2000 ? events.size() - 2000 : 0));
  CHECK(events.find("\"type\":\"checkpoint.saved\"") != std::string::npos);
}

TEST_CASE("a slow node and a full disk change no number", "[apps][cluster]") {
  const Workplace here;
  const Ended played = play(here, "[cluster]\nnodes = 2\n" + submitted("calm", 60) +
                                      ends("calm", "done") + submitted("slow", 60) +
                                      R"([[act]]
when = { type = "step", run = "slow", step = ">= 10" }
send = { type = "chaos", what = "slow", target = "node-1", seconds = 1, times = 3 }
[[act]]
)" + ends("slow", "done") + "same_weights = [\"slow\", \"calm\"]\n" +
                                      submitted("full", 200, "\"checkpoint.every=5 steps\"") +
                                      R"([[act]]
when = { type = "step", run = "full", step = ">= 3" }
send = { type = "chaos", what = "disk-full", target = "full", seconds = 2 }
expect = { type = "warn", run = "full", text = "~ No space left on device" }
[[act]]
send = { type = "run.pause", run = "full" }
expect = { type = "run.state", run = "full", state = "paused" }
[[act]]
after = "2s"
send = { type = "run.resume", run = "full" }
expect = { type = "checkpoint.saved", run = "full", step = ">= 5" }
[[act]]
)" + ends("full", "done"));
  INFO(played.err);
  CHECK(played.code == 0);
}

TEST_CASE("a learning rate that was set holds after a restart from before or after that step",
          "[apps][cluster]") {
  const Workplace here;
  const std::string often = "\"checkpoint.every=20 steps\"";
  const std::string stormy = submitted("stormy", 200, often);
  const Ended played = play(
      here, "[cluster]\nnodes = 2\n" +
                submitted("planned", 200, "\"optimizer.changes=1e-3 from 50\"") +
                ends("planned", "done") + stormy +
                R"([[act]]
when = { type = "step", run = "stormy", step = ">= 25" }
send = { type = "run.set", run = "stormy", set = "optimizer.lr=1e-3", from = 50 }
expect = { type = "run.changed", run = "stormy", step = 50 }
[[act]]
send = { type = "run.stop", run = "stormy", mode = "now" }
)" + ends("stormy", "stopped") +
                stormy + "resume = true\n" +
                R"([[act]]
when = { type = "step", run = "stormy", step = ">= 62" }
send = { type = "run.stop", run = "stormy", mode = "now" }
)" + ends("stormy", "stopped") +
                stormy + "resume = true\n[[act]]\n" + ends("stormy", "done") +
                "same_weights = [\"stormy\", \"planned\"]\n"
                "[[act]]\ncommand = [\"logs\", \"stormy\"]\n"
                "[[act]]\ncommand = [\"attach\", \"stormy\"]\n"
                "[[act]]\ncommand = [\"set\", \"stormy\", \"optimizer.lr=1e-4\"]\nexit_code = 1\n"
                "[[act]]\ncommand = [\"nodes\", \"cordon\", \"node-1\"]\n"
                "[[act]]\ncommand = [\"nodes\", \"uncordon\", \"node-1\"]\n"
                "[[act]]\ncommand = [\"nodes\", \"drain\", \"nobody\"]\nexit_code = 1\n");
  INFO(played.err);
  CHECK(played.code == 0);
  CHECK(played.out.find("run stormy: done") != std::string::npos);  // Printed by logs.
  CHECK(played.err.find("the run 'stormy' is not active: it is done") != std::string::npos);
}
