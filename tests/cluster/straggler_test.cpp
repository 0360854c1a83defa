// A node that computes slowly is named until it is fast again. How soon, and that noise names
// nobody, is a matter of times: stragglers_test has it for times of its own.

#include <optional>
#include <string>

#include "catch.h"
#include "cluster/cluster.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

/// Makes a node compute slower for as long as the test may take. With 1 it is as fast as before.
void slow_down(const Workplace& here, const std::string& node, const std::string& times) {
  const Ended done = tests::troupe(
      here, {"chaos", "slow", node, "--times", times, "--for", "3600s", "--head", head_of(here)});
  INFO(done.err);
  REQUIRE(done.code == 0);
}

/// Returns the newest event that names the node, or takes that back.
std::optional<Value> newest_about(const Workplace& here, const std::string& node) {
  std::optional<Value> newest;
  for (const auto& event : events(here, "many", "node.straggler"))
    if (text_of(event, "node") == node) newest = event;
  return newest;
}

std::string told_by(const Workplace& here, const std::string& command) {
  return tests::troupe(here, {command, "--head", head_of(here)}).out;
}

}  // namespace

TEST_CASE("a node that becomes slow is named, until it is fast", "[cluster]") {
  const Workplace here;
  const auto before = leavings(here);
  here.write("gpt.toml", gpt);
  {
    Cluster cluster(here, {"alpha", "beta", "gamma"}, {}, {"--allow-chaos"});
    Process submit(here,
                   with({"submit", "gpt.toml", "--wait", "--output", "plain"},
                        {"name=many", "pipeline.stages=3", "log.every=1", "train.steps=1000000",
                         "train.eval_every=1000000", "checkpoint.every=1000000 steps"}));
    // The run must know how fast its devices are.
    REQUIRE(submit.says("\nstep 80 ", 2 * usual_patience));
    slow_down(here, "beta", "8");
    // On a busy machine others may be named as well, and so may beta before it was slowed down. In
    // the end it is named, and stays so.
    auto step = integer_in(events(here, "many", "step").back(), "step");
    auto named = newest_about(here, "beta");
    do {
      step += 10;
      const bool goes_on = submit.says("\nstep " + std::to_string(step) + " ", usual_patience);
      INFO(submit.said());
      REQUIRE(goes_on);
      named = newest_about(here, "beta");
    } while (!named || named->find("over"));
    INFO(to_json(*named));
    CHECK(text_of(*named, "cause") == "computing");
    CHECK(text_of(*named, "than") == "before");
    CHECK(number_in(*named, "factor") > 1.5);
    CHECK(number_in(*named, "share") > 0.05);
    CHECK(number_in(*named, "share") <= 1);
    CHECK(integer_in(*named, "since") <= integer_in(*named, "step"));
    for (const std::string command : {"status", "runs", "top"}) {
      INFO(command);
      CHECK(told_by(here, command).find("beta is slow: device ") != std::string::npos);
    }
    CHECK(told_by(here, "nodes").find("slow in run many: device ") != std::string::npos);
    slow_down(here, "beta", "1");
    CHECK(submit.says("is not slow any more: it is as fast as usual again", 2 * usual_patience));
    CHECK(tests::troupe(here, {"stop", "many", "--head", head_of(here)}).code == 0);
    CHECK(submit.wait().has_value());
    CHECK(tests::troupe(here, {"report", "many", "--out", "page.html"}).code == 0);
    CHECK(here.read("page.html").find(R"("stragglers":[{"node":)") != std::string::npos);
    cluster.end();
  }
  CHECK(leavings(here) == before);
  CHECK(processes_of_program(here) == 0);
}
