// Commands that show what a head knows: where they print it, and what they do while the head is
// away.

#include <signal.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "apps/program.h"
#include "apps/quickstart.h"
#include "apps/small_cluster.h"
#include "catch.h"
#include "cluster/process.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

/// Ctrl-C is answered within 0.2 s. A loaded machine gets more.
constexpr std::chrono::milliseconds at_once(is_sanitized ? 5000 : 1000);

/// Returns how long the process takes to end by Ctrl-C.
std::chrono::milliseconds time_to_end(Process& process, std::optional<int> code) {
  const auto began = std::chrono::steady_clock::now();
  process.send(SIGINT);
  CHECK(process.wait() == code);
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began);
}

}  // namespace

TEST_CASE("a run that is shown goes to stdout", "[apps]") {
  SmallCluster cluster;
  const std::vector<std::string> submit = {"submit", quickstart,   "--set", "train.steps=20",
                                           "--set",  "name=shown", "--wait"};
  const Ended waited = cluster.run(submit);
  CHECK(waited.code == 0);
  const Ended logged = cluster.run({"logs", "shown"});
  CHECK(logged.code == 0);
  for (const auto& ended : {waited, logged}) {
    INFO(ended.out << "and on stderr:\n" << ended.err);
    CHECK(ended.out.find("step 20 of 20  100 %  loss ") != std::string::npos);
    CHECK(ended.out.find("run shown: done\n") != std::string::npos);
    CHECK(ended.err.empty());
  }
}

TEST_CASE("who waits for a head that is away says so and ends by Ctrl-C at once", "[apps]") {
  SmallCluster cluster;
  Process submit(cluster.here(), {"submit", quickstart, "--set", "train.steps=100000", "--wait"});
  REQUIRE(submit.says("step 10 "));
  Process events(cluster.here(), {"events"});
  REQUIRE(events.says("step "));
  cluster.kill_head();
  CHECK(submit.says("no answer from the head for 2 s; waiting for it, and quickstart may go on"));
  CHECK(events.says("; waiting for it"));
  CHECK(time_to_end(submit, 130) < at_once);
  CHECK(submit.said().find("`troupe attach quickstart` follows it again") != std::string::npos);
  CHECK(time_to_end(events, 0) < at_once);
}

TEST_CASE("train answers Ctrl-C at once, while a step takes longer", "[apps]") {
  const Workplace here;
  Process train(here, {"train", quickstart, "--set", "batch.global=4096", "--set", "log.every=1"});
  REQUIRE(train.says("step 1 "));
  const auto began = std::chrono::steady_clock::now();
  train.send(SIGINT);
  CHECK(train.says("stopping: quickstart finishes its step and saves; a second Ctrl-C"));
  CHECK(std::chrono::steady_clock::now() - began < at_once);
  CHECK(train.wait() == 75);
  CHECK(train.says("to resume: troupe train"));
}
