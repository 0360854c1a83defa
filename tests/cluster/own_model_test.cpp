// A model of one's own on several machines: its description travels in the configuration.

#include <signal.h>

#include "catch.h"
#include "cluster/cluster.h"
#include "own_tiny.h"
#include "own_unet.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

const std::string run = R"(
[model]
kind = "tiny.toml"
width = 4
[data]
train = "made:glyphs"
[batch]
global = 8
micro = 2
[precision]
compute = "fp32"
[train]
steps = 60
)";

const std::string mixture = R"(
[model]
kind = "mixtral"
vocab = "auto"
context = 16
width = 16
layers = 3
heads = 2
ffn = 24
experts = 4
balance = 0.1
[data]
train = "made:markov?states=16"
[batch]
global = 8
micro = 2
[precision]
compute = "fp32"
[train]
steps = 60
)";

}  // namespace

TEST_CASE("experts of two replicas train on, with the same bits, when a node is killed",
          "[cluster]") {
  const Workplace here;
  here.write("run.toml", mixture);
  const Ended one = troupe::tests::troupe(here, with({"train", "run.toml", "-q"}, {"name=one"}));
  INFO(one.err);
  REQUIRE(one.code == 0);
  {
    Cluster cluster(here, {"alpha", "beta", "gamma", "delta"});
    Process submit(here, with({"submit", "run.toml", "--wait", "--output", "plain"},
                              {"name=many", "pipeline.stages=2", "pipeline.replicas=2",
                               "pipeline.recompute=true", "log.every=5"}));
    INFO(submit.said());
    REQUIRE(submit.says("step 10 "));
    cluster.nodes[1]->send(SIGKILL);
    cluster.start_node("epsilon");
    const auto code = submit.wait();
    INFO(submit.said());
    CHECK(code == 0);
    CHECK(cluster.head.says("node beta is lost"));
    for (std::size_t i = 0; i < cluster.nodes.size(); ++i)
      if (i != 1) cluster.nodes[i]->send(SIGTERM);
    cluster.head.send(SIGTERM);
    CHECK(cluster.head.wait() == 0);
  }
  CHECK(digest(here, "many") == digest(here, "one"));
}

TEST_CASE("a model of one's own trains on, with the same bits, when a node is killed",
          "[cluster]") {
  const bool has_skips = GENERATE(false, true);
  CAPTURE(has_skips);
  const Workplace here;
  const auto before = leavings(here);
  here.write("tiny.toml", has_skips ? own_unet : own_tiny);
  here.write("run.toml", run);
  const Ended one = troupe::tests::troupe(here, with({"train", "run.toml", "-q"}, {"name=one"}));
  INFO(one.err);
  REQUIRE(one.code == 0);
  {
    Cluster cluster(here, {"alpha", "beta"});
    Process submit(
        here, with({"submit", "run.toml", "--wait", "--output", "plain"},
                   {"name=many", "pipeline.stages=4", "pipeline.recompute=true", "log.every=5"}));
    INFO(submit.said());
    REQUIRE(submit.says("step 10 "));
    cluster.nodes[0]->send(SIGKILL);
    cluster.start_node("gamma");
    const auto code = submit.wait();
    INFO(submit.said());
    CHECK(code == 0);
    CHECK(cluster.head.says("node alpha is lost"));
    for (std::size_t i = 1; i < cluster.nodes.size(); ++i) cluster.nodes[i]->send(SIGTERM);
    cluster.head.send(SIGTERM);
    CHECK(cluster.head.wait() == 0);
  }
  CHECK(digest(here, "many") == digest(here, "one"));
  CHECK(leavings(here) == before);
  CHECK(processes_of_program(here) == 0);
}
