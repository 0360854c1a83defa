// A daemon and its node process.

#include <signal.h>

#include "actors/nodes/node_messages.h"
#include "catch.h"
#include "cluster/cluster.h"
#include "transport/sockets.h"
#include "transport/wire/fields.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

const std::vector<std::string> settings{"train.steps=150"};

/// A run over two nodes that is past the last saved step.
struct RunOverTwo {
  const Workplace here;
  const std::set<std::string> before = leavings(here);
  std::string one;
  Cluster cluster;
  Process submit;

  RunOverTwo()
      : one((here.write("gpt.toml", gpt), digest_of_one(here, settings))),
        cluster(here, {"alpha", "beta"}),
        submit(here, with({"submit", "gpt.toml", "--wait", "--output", "plain"},
                          {"name=many", "train.steps=150", "pipeline.stages=2", "log.every=5"})) {
    INFO(submit.said());
    REQUIRE(submit.says("step 45 "));
  }
  void ends_as_one() {
    const auto code = submit.wait();
    INFO(submit.said() << cluster.head.said());
    CHECK(code == 0);
    CHECK(digest(here, "many") == one);
  }
  void leaves_nothing() {
    CHECK(leavings(here) == before);
    CHECK(processes_of_program(here) == 0);
  }
};

}  // namespace

TEST_CASE_METHOD(RunOverTwo,
                 "a node process that dies is restarted, and the head learns the reason",
                 "[cluster]") {
  const pid_t victim = cluster.node_process(0);
  kill(victim, SIGKILL);
  INFO(cluster.head.said() << cluster.nodes[0]->said());
  CHECK(cluster.head.says("node alpha is lost: its process was ended by signal 9 (Killed)"));
  CHECK(cluster.nodes[0]->says("node process " + std::to_string(victim) +
                               " was ended by signal 9 (Killed); another one is started"));
  CHECK(cluster.head.says("node alpha has joined"));
  ends_as_one();
  CHECK(submit.said().find("recovering from the newest state in memory") != std::string::npos);
  cluster.end();
  leaves_nothing();
}

TEST_CASE_METHOD(RunOverTwo, "a node that is asked to end leaves, and no step is repeated",
                 "[cluster]") {
  cluster.nodes[0]->send(SIGTERM);
  CHECK(cluster.nodes[0]->wait() == 0);
  CHECK(cluster.head.says("node alpha is leaving: stopped on request"));
  ends_as_one();
  const auto times = times_done(here, "many");
  CHECK(times.size() == 150);
  for (const auto& [step, count] : times) CHECK(count == 1);
  cluster.nodes.erase(cluster.nodes.begin());
  cluster.end();
  leaves_nothing();
}

TEST_CASE_METHOD(RunOverTwo, "a daemon that is killed takes its node process with it",
                 "[cluster]") {
  const pid_t node = cluster.node_process(1);
  cluster.nodes[1]->send(SIGKILL);
  CHECK(is_gone(node));
  ends_as_one();
  cluster.nodes.pop_back();
  cluster.end();
  leaves_nothing();
}

TEST_CASE("nodes that train starts on this machine are restarted too", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  const auto one = digest_of_one(here, settings);
  Process train(here, with({"train", "gpt.toml", "--nodes", "2", "--output", "plain"},
                           {"name=many", "train.steps=150", "pipeline.stages=2", "log.every=5"}));
  INFO(train.said());
  REQUIRE(train.says("step 45 "));
  const auto nodes = children_of(train.id());
  REQUIRE(nodes.size() == 2);
  kill(nodes[1], SIGKILL);
  CHECK(train.wait() == 0);
  CHECK(train.said().find("recovering from the newest state in memory") != std::string::npos);
  CHECK(digest(here, "many") == one);
  CHECK(processes_of_program(here) == 0);
}

TEST_CASE("a node reports once that its head is missing, and joins when the head comes",
          "[cluster]") {
  const Workplace here;
  std::string address;
  {
    Cluster cluster(here, {});
    address = head_of(here);
    cluster.end();
  }
  Process node(here, {"node", "--name", "alpha", "--head", address});
  REQUIRE(node.says("no connection to the head: "));
  node.listen(std::chrono::milliseconds(1500));  // The node tries several times per second.
  const auto count = [&] {
    int times = 0;
    for (auto at = node.said().find("nobody listens there"); at != std::string::npos; ++times)
      at = node.said().find("nobody listens there", at + 1);
    return times;
  };
  INFO(node.said());
  CHECK(count() == 1);
  Cluster cluster(here, {});
  CHECK(node.says("joined"));
  node.send(SIGTERM);
  CHECK(node.wait() == 0);
  CHECK(count() == 1);
}

TEST_CASE("a node that never sends a heartbeat is lost", "[cluster]") {
  const Workplace here;
  Process head(here, head_words());
  REQUIRE(head.says("troupe submit"));
  actors::Join join;
  join.name = "mute";
  join.inventory.host = "nowhere";
  const std::string program = "troupe ";
  const auto version = head.said().find(program) + program.size();
  join.inventory.version = head.said().substr(version, head.said().find(' ', version) - version);
  auto message = transport::to_message(join);
  message.id = 1;
  message.incarnation = 7;
  RawConnection mute(head_of(here));
  REQUIRE(mute.shake_hands());
  mute.send_message(parts_of(message));
  REQUIRE(mute.wait_for("node.welcome"));
  CHECK(head.says("node mute is lost: no heartbeat for "));
  head.send(SIGTERM);
  CHECK(head.wait() == 0);
}
