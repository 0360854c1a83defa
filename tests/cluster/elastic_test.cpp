// Nodes that come and go during a run.

#include <signal.h>

#include <algorithm>

#include "catch.h"
#include "cluster/cluster.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

/// Waits for more output with this text.
void await(Process& submit, const std::string& text) {
  const bool came = submit.says_once_more(text);
  INFO(submit.said());
  REQUIRE(came);
}

}  // namespace

TEST_CASE("a run that goes from 4 nodes to 3, to 1 and to 4 again changes no bit", "[cluster]") {
  const Workplace here;
  const auto before = leavings(here);
  here.write("gpt.toml", gpt);
  const std::vector<std::string> settings{"train.steps=600", "checkpoint.every=10 steps",
                                          "train.eval_every=600"};
  const auto one = digest_of_one(here, settings);
  {
    Cluster cluster(here, {"a", "b", "c", "d"});
    auto words = with({"submit", "gpt.toml", "--wait", "--output", "plain"}, settings);
    words = with(words, {"name=many", "pipeline.stages=2", "pipeline.replicas=2", "log.every=1",
                         "elastic.replan=nodes"});
    Process submit(here, words);
    await(submit, "placement: a: device 0; b: device 1; c: device 2; d: device 3");
    await(submit, "step 30 ");
    const auto lose = [&] {
      submit.see_all();
      cluster.nodes.front()->send(SIGKILL);
      cluster.nodes.erase(cluster.nodes.begin());
    };
    lose();
    await(submit, "placement: b: device 0 1; c: device 2; d: device 3");
    await(submit, "recovered in");
    lose();
    lose();
    await(submit, "placement: d: device 0 1 2 3");
    await(submit, "recovered in");
    for (const std::string name : {"e", "f", "g"}) cluster.start_node(name);
    // The nodes join at a recovery point, perhaps not all at once, and the order decides their
    // devices. Node d has one device only if three other nodes have one each.
    await(submit, "placement: d: device 0; ");
    const auto code = submit.wait();
    INFO(submit.said());
    CHECK(code == 0);
    CHECK(submit.said().find(" % less") != std::string::npos);
    CHECK(digest(here, "many") == one);
    cluster.end();
  }
  CHECK(leavings(here) == before);
  CHECK(processes_of_program(here) == 0);
}

namespace {

std::vector<std::string> with_one(std::vector<std::string> words, const std::string& last) {
  words.push_back(last);
  return words;
}

/// Returns the plans in the order of their use: "[0,2,4] x 1".
std::vector<std::string> plans_of(const Workplace& here) {
  std::vector<std::string> plans;
  for (const auto& told : events(here, "many", "run.chosen"))
    plans.push_back(to_json(*told.find("stages")) + " x " + to_json(*told.find("replicas")));
  return plans;
}

/// Changes the nodes from 4 to 3, to 1 and to 4 again; the run uses another plan each time. In the
/// end it prints `last`. Returns the plans.
std::vector<std::string> plans_for_few_and_many(const std::vector<std::string>& recipe,
                                                const std::vector<std::string>& plan,
                                                const std::string& last) {
  const Workplace here;
  const auto before = leavings(here);
  here.write("gpt.toml", gpt);
  std::vector<std::string> plans;
  {
    Cluster cluster(here, {"a", "b", "c", "d"});
    // More steps than the run will do. All nodes share this machine's cores, so measured steps
    // would speak for few nodes.
    const auto words =
        with(with(with({"submit", "gpt.toml", "--wait", "--output", "plain"}, recipe), plan),
             {"name=many", "train.steps=100000", "checkpoint.every=10 steps", "log.every=1",
              "limits.gather_patience=100ms", "elastic.replan=nodes"});
    Process submit(here, words);
    await(submit, "step 30 ");
    const auto lose = [&](int count) {
      submit.see_all();
      for (; count > 0; --count) {
        cluster.nodes.front()->send(SIGKILL);
        cluster.nodes.erase(cluster.nodes.begin());
      }
      await(submit, "distributed over");
    };
    lose(1);
    lose(2);
    for (const std::string name : {"e", "f", "g"}) cluster.start_node(name);
    await(submit, last);
    REQUIRE(troupe::tests::troupe(here, {"stop", "many", "--head", head_of(here)}).code == 0);
    submit.wait();
    INFO(submit.said());
    const auto done = to_json(*events(here, "many", "step").back().find("step"));
    const auto of_one = digest_of_one(here, with_one(recipe, "train.steps=" + done));
    CHECK(digest(here, "many") == of_one);
    plans = plans_of(here);
    cluster.end();
  }
  CHECK(leavings(here) == before);
  CHECK(processes_of_program(here) == 0);
  return plans;
}

}  // namespace

TEST_CASE("when nodes go and come, a run gets as many stages as pay", "[cluster]") {
  // A pass takes long compared with its fixed cost, so stages pay.
  const auto plans = plans_for_few_and_many(
      {"model.context=64", "model.width=64", "batch.global=32", "batch.micro=4"},
      {"pipeline.stages=auto"}, "distributed over");
  REQUIRE(plans.size() >= 4);
  CHECK(plans[0] == "[0,1,2,3,4] x 1");
  CHECK(plans[1] != plans[0]);
  CHECK(std::ranges::count(plans, "[0,4] x 1") > 0);
  CHECK(plans.back() != "[0,4] x 1");
}

TEST_CASE("when nodes go and come, a run gets as many replicas as pay", "[cluster]") {
  // Four replicas and three can share twelve micro-batches. With four on three nodes, one node has
  // half of them.
  const auto plans = plans_for_few_and_many({"batch.global=24", "parallel.groups=12"},
                                            {"pipeline.stages=1", "pipeline.replicas=auto"},
                                            "distributed over 4 replicas");
  REQUIRE(plans.size() >= 4);
  CHECK(plans[0] == "[0,4] x 4");
  CHECK(plans[1] == "[0,4] x 3");
  CHECK(std::ranges::count(plans, "[0,4] x 1") > 0);
  CHECK(plans.back() == "[0,4] x 4");
}
