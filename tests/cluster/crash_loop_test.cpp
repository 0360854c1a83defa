// A run whose processes always die at about the same step fails with the reason.

#include <signal.h>

#include <algorithm>
#include <string>

#include "catch.h"
#include "cluster/cluster.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::tests;

TEST_CASE("a run ends if its node is killed each time it reaches step 15", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  Cluster cluster(here, {"alpha"});
  Process submit(here, with({"submit", "gpt.toml", "--wait", "--output", "plain"},
                            {"name=loop", "train.steps=100000", "train.eval_every=100000",
                             "checkpoint.every=1000000 steps", "log.every=1", "limits.strikes=1"}));
  // The first attempt, six without a new step, and attempts that got a step further by chance.
  constexpr int most_deaths = 25;
  int deaths = 0;
  while (deaths <= most_deaths && submit.says_once_more("\nstep 15 ")) {
    kill(cluster.node_process(0), SIGKILL);
    ++deaths;
  }
  INFO(submit.said() << cluster.head.said());
  CHECK(submit.wait(std::chrono::seconds(10)).value_or(-1) == 1);
  CHECK(deaths >= 3);
  CHECK(deaths <= most_deaths);
  const auto states = events(here, "loop", "run.state");
  const auto& why = *states.back().find("why")->text();
  CHECK(why.find("attempts in a row ended before step ") != std::string::npos);
  CHECK(why.find("limits.futile_epochs + limits.strikes = 6") != std::string::npos);
  CHECK(why.find("ended by signal 9 (Killed)") != std::string::npos);
  // The last decision says the same, and no terminal shows decisions.
  const auto decisions = events(here, "loop", "decision");
  REQUIRE_FALSE(decisions.empty());
  const auto rows_of = [](const Value& decision) { return to_json(*decision.find("rows")); };
  CHECK(std::ranges::count(decisions, R"(["boot_fresh"])", rows_of) == 1);
  CHECK(rows_of(decisions.back()).find("recover_hopeless") != std::string::npos);
  CHECK(why.starts_with(*decisions.back().find("why")->text()));
  CHECK(submit.said().find("decided") == std::string::npos);
  cluster.end();
}
