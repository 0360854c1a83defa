// Connections to the head that break while all processes live.

#include "catch.h"
#include "cluster/cluster.h"
#include "cluster/proxy.h"

using namespace troupe;
using namespace troupe::tests;

TEST_CASE("a node whose connections to the head are cut continues without a loss", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  const auto one = digest_of_one(here, {"train.steps=300"});
  Cluster cluster(here, {"alpha"});
  Proxy proxy(head_of(here));
  cluster.start_node("beta", {"--head", proxy.address()});
  Process submit(here, with({"submit", "gpt.toml", "--wait", "--output", "plain"},
                            {"name=many", "train.steps=300", "pipeline.stages=2", "log.every=1"}));
  INFO(submit.said() << cluster.head.said() << cluster.nodes[1]->said());
  for (int cut = 0; cut < 10; ++cut) {
    REQUIRE(submit.says("step " + std::to_string(20 + 20 * cut) + " "));
    proxy.cut();
    REQUIRE(cluster.nodes[1]->says_once_more("back at"));
  }
  CHECK(submit.wait() == 0);
  CHECK(digest(here, "many") == one);
  CHECK(cluster.head.said().find("is lost") == std::string::npos);
  const auto times = times_done(here, "many");
  CHECK(times.size() == 300);
  for (const auto& [step, count] : times) CHECK(count == 1);
  cluster.end();
}
