// Nodes that come and go while a run is under way.

#include <signal.h>

#include "catch.h"
#include "cluster/cluster.h"

using namespace troupe;
using namespace troupe::tests;

TEST_CASE("a run goes from 4 nodes to 3, to 1 and to 4 again, and changes no bit", "[cluster]") {
  const Workplace here;
  const auto before = leavings(here);
  here.write("gpt.toml", gpt);
  const std::vector<std::string> settings{"train.steps=600", "checkpoint.every=10 steps",
                                          "train.eval_every=600"};
  const auto one = digest_of_one(here, settings);
  {
    Cluster cluster(here, {"a", "b", "c", "d"});
    auto words = with({"submit", "gpt.toml", "--wait", "--output", "plain"}, settings);
    words = with(words, {"name=many", "pipeline.stages=2", "pipeline.replicas=2", "log.every=1"});
    Process submit(here, words);
    INFO(submit.said() << cluster.head.said());
    REQUIRE(submit.says("on a: device 0; b: device 1; c: device 2; d: device 3"));
    REQUIRE(submit.says("step 30 "));
    const auto lose = [&] {
      cluster.nodes.front()->send(SIGKILL);
      cluster.nodes.erase(cluster.nodes.begin());
      submit.see_all();
    };
    lose();
    REQUIRE(submit.says_once_more("on b: device 0 1; c: device 2; d: device 3"));
    REQUIRE(submit.says_once_more("goes on after"));
    lose();
    lose();
    REQUIRE(submit.says_once_more("on d: device 0 1 2 3"));
    REQUIRE(submit.says_once_more("goes on after"));
    for (const std::string name : {"e", "f", "g"}) cluster.start_node(name);
    // Not before a save point; perhaps not all at once.
    REQUIRE(submit.says_once_more("on d: device 0; e: device 1; f: device 2; g: device 3"));
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
