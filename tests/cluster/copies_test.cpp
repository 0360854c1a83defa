// States in the memory of nodes, from which a run resumes after some nodes were killed.

#include <signal.h>

#include <algorithm>
#include <utility>

#include "catch.h"
#include "cluster/cluster.h"
#include "cluster/stopped_thread.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

/// A recovery of a run.
struct Recovered {
  std::string from;
  std::int64_t step = 0;
  std::int64_t redone = 0;
};

/// Returns the recoveries of a run so far. On a busy machine a node may be silent at the start for
/// so long that it counts as lost, so tests count from the moment at which they do harm.
std::vector<Recovered> recovered(const Workplace& here, const std::string& run) {
  std::vector<Recovered> all;
  for (const auto& event : events(here, run, "run.recovered"))
    all.push_back({*event.find("from")->text(), *event.find("step")->integer(),
                   *event.find("redone")->integer()});
  return all;
}

void check_audit(const Workplace& here, const std::string& run, int steps) {
  const Ended audit = troupe::tests::troupe(here, {"audit", run});
  INFO(audit.out << audit.err);
  CHECK(audit.code == 0);
  CHECK(audit.out.find(std::to_string(steps)) != std::string::npos);
}

struct Case {
  const char* name;
  std::vector<std::string> settings;
  std::vector<std::size_t> killed;  // The nodes to kill, all at once.
  const char* from;
  int nodes = 4;
};

}  // namespace

TEST_CASE("after kills a run resumes from memory if copies are left", "[cluster]") {
  const Workplace here;
  const auto before = leavings(here);
  here.write("gpt.toml", gpt);
  constexpr int steps = 160;
  const std::vector<std::string> usual{"train.steps=" + std::to_string(steps),
                                       "checkpoint.every=1000 steps", "train.eval_every=1000"};
  const std::vector<std::string> late{"pipeline.stages=2", "pipeline.schedule=pipedream",
                                      "model.tied=false", "staleness.preset=ws",
                                      "staleness.flush_every=32"};
  const std::vector<Case> cases = {
      {"one", {"pipeline.stages=4"}, {1}, "memory"},
      {"two", {"pipeline.stages=4", "elastic.copies=3"}, {1, 2}, "memory"},
      {"gone", {"pipeline.stages=4"}, {1, 2}, "checkpoint"},
      {"disk", {"pipeline.stages=4", "elastic.copies=1"}, {1}, "checkpoint"},
      {"replicas", {"pipeline.stages=2", "pipeline.replicas=2"}, {0}, "memory"},
      {"late", late, {0}, "memory", 2},
  };
  for (const auto& [name, settings, killed, from, nodes] : cases) {
    auto words = usual;
    words.insert(words.end(), settings.begin(), settings.end());
    const bool is_late = settings == late;
    auto alone = is_late ? words : usual;
    alone.push_back("name=alone-" + std::string(name));
    const Ended one = troupe::tests::troupe(here, with({"train", "gpt.toml", "-q"}, alone));
    INFO(name << ": " << one.err);
    REQUIRE(one.code == 0);

    Cluster cluster(here, {});
    for (int node = 0; node < nodes; ++node) cluster.start_node("n" + std::to_string(node));
    Process submit(here, with(with({"submit", "gpt.toml", "--wait", "--output", "plain"}, words),
                              {"name=" + std::string(name), "log.every=1",
                               "elastic.nodes=" + std::to_string(nodes - killed.size()) + ":4"}));
    INFO(submit.said() << cluster.head.said());
    REQUIRE(submit.says("step 60 "));
    const auto earlier = recovered(here, name).size();
    // Stops all of them first, so that they die together.
    for (const auto node : killed) kill(cluster.node_process(node), SIGSTOP);
    for (const auto node : killed) kill(cluster.node_process(node), SIGKILL);
    CHECK(submit.wait() == 0);
    CHECK(digest(here, name) == digest(here, "alone-" + std::string(name)));
    check_audit(here, name, steps);
    const auto losses = recovered(here, name);
    REQUIRE(losses.size() == earlier + 1);
    CHECK(losses.back().from == from);
    // The age of the state depends on this machine's speed; lines_test.cpp tests it with its own
    // clock.
    if (losses.back().from == "memory") CHECK(losses.back().step > 0);
    if (losses.back().from == "checkpoint") CHECK(losses.back().step == 0);
    cluster.end();
  }
  CHECK(leavings(here) == before);
  CHECK(processes_of_program(here) == 0);
}

TEST_CASE("nodes that were stopped for a while return with the states that only they keep",
          "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  const std::vector<std::string> settings{"train.steps=400", "checkpoint.every=1000 steps",
                                          "train.eval_every=1000"};
  const auto one = digest_of_one(here, settings);
  Cluster cluster(here, {"n0", "n1", "n2", "n3"});
  Process submit(here,
                 with(with({"submit", "gpt.toml", "--wait", "--output", "plain"}, settings),
                      {"name=frozen", "log.every=1", "pipeline.stages=4", "elastic.nodes=2:4"}));
  REQUIRE(submit.says("step 150 "));
  const pid_t frozen[] = {cluster.node_process(1), cluster.node_process(2)};
  const auto earlier = recovered(here, "frozen").size();
  cluster.head.see_all();
  for (const pid_t process : frozen) kill(process, SIGSTOP);
  CHECK(cluster.head.says_once_more("no heartbeat for"));
  submit.listen(std::chrono::milliseconds(1000));
  for (const pid_t process : frozen) kill(process, SIGCONT);
  INFO(submit.said() << cluster.head.said());
  CHECK(submit.wait().value_or(-1) == 0);
  CHECK(digest(here, "frozen") == one);
  const auto losses = recovered(here, "frozen");
  REQUIRE(losses.size() == earlier + 1);
  CHECK(losses.back().from == "memory");
  // The limit is half of 150 steps. The exact count depends on this machine's speed
  // (lines_test.cpp).
  CAPTURE(losses.back().redone);
  CHECK(losses.back().redone < 75);
  cluster.end();
}

TEST_CASE("the states of a run in memory are released when it ends", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  Cluster cluster(here, {"alpha", "beta"});
  // The store has a thread of its own, which ends with it.
  const auto threads = [&] { return threads_of(cluster.node_process(0)); };
  const auto has_store = [&] {
    const auto all = threads();
    return std::ranges::count(all, "keeping", &Thread::name) > 0;
  };
  // The nodes hear of the end of a run later than submit does.
  const auto await_release = [&] {
    for (int look = 0; look < 100 && has_store(); ++look)
      cluster.nodes[0]->listen(std::chrono::milliseconds(100));
  };
  // A node makes some threads in its first run and keeps them.
  Process first(here, with({"submit", "gpt.toml", "--wait", "--output", "plain"},
                           {"name=first", "train.steps=5", "pipeline.stages=2"}));
  REQUIRE(first.wait() == 0);
  await_release();
  const auto at_first = threads().size();
  Process submit(here, with({"submit", "gpt.toml", "--wait", "--output", "plain"},
                            {"name=some", "train.steps=100000", "pipeline.stages=2",
                             "train.eval_every=100000", "log.every=1"}));
  REQUIRE(submit.says("step 10 "));
  const Ended paused = troupe::tests::troupe(here, {"pause", "some", "--head", head_of(here)});
  CHECK(paused.code == 0);
  CHECK(has_store());
  CHECK(threads().size() > at_first);
  const Ended stopped = troupe::tests::troupe(here, {"stop", "some", "--head", head_of(here)});
  CHECK(stopped.code == 0);
  CHECK(submit.wait() == 75);
  await_release();
  CHECK(threads().size() == at_first);
  cluster.end();
}

TEST_CASE("a head that is killed resumes from the states that its nodes have kept", "[cluster]") {
  const Workplace here;
  const auto before = leavings(here);
  here.write("gpt.toml", gpt);
  const std::vector<std::string> settings{"train.steps=160", "checkpoint.every=1000 steps",
                                          "train.eval_every=1000"};
  const auto one = digest_of_one(here, settings);
  Process head(here, head_words({"--supervised"}));
  REQUIRE(head.says("troupe submit"));
  Process alpha(here, {"node", "--name", "alpha", "--cores", "1"});
  Process beta(here, {"node", "--name", "beta", "--cores", "1"});
  for (Process* node : {&alpha, &beta}) REQUIRE(node->says("joined"));
  const auto nodes = [&] {
    return std::pair(children_of(alpha.id()).front(), children_of(beta.id()).front());
  };
  const auto processes = nodes();
  Process submit(here, with(with({"submit", "gpt.toml", "--wait", "--output", "plain"}, settings),
                            {"name=many", "pipeline.stages=2", "log.every=1"}));
  INFO(submit.said() << head.said() << alpha.said());
  for (const int step : {40, 80}) {
    REQUIRE(submit.says("\nstep " + std::to_string(step) + " "));
    const auto heads = children_of(head.id());
    REQUIRE(heads.size() == 1);
    kill(heads.front(), SIGKILL);
    REQUIRE(head.says_once_more("run many continues"));
  }
  CHECK(submit.wait() == 0);
  CHECK(digest(here, "many") == one);
  check_audit(here, "many", 160);
  // Nothing was saved on disk, and yet the run did not begin anew.
  const auto times = times_done(here, "many");
  CHECK(times.at(1) == 1);
  // The node processes survive.
  CHECK(nodes() == processes);
  for (Process* node : {&alpha, &beta}) node->send(SIGTERM);
  for (Process* node : {&alpha, &beta}) CHECK(node->wait() == 0);
  head.send(SIGTERM);
  CHECK(head.wait() == 0);
  CHECK(leavings(here) == before);
  CHECK(processes_of_program(here) == 0);
}

TEST_CASE("a head that ends while its run waits for nodes resumes from the states they kept",
          "[cluster]") {
  const Workplace here;
  const auto before = leavings(here);
  here.write("gpt.toml", gpt);
  const std::vector<std::string> settings{"train.steps=100", "checkpoint.every=1000 steps",
                                          "train.eval_every=1000"};
  const auto one = digest_of_one(here, settings);
  {
    Cluster cluster(here, {"alpha", "beta"});
    const auto address = head_of(here);
    auto words = with({"submit", "gpt.toml", "--wait", "--output", "plain"}, settings);
    words = with(words, {"name=many", "pipeline.stages=2", "elastic.nodes=2:2", "log.every=1"});
    Process submit(here, words);
    INFO(submit.said() << cluster.head.said());
    REQUIRE(submit.says("\nstep 40 "));
    cluster.nodes.back()->send(SIGKILL);
    cluster.nodes.pop_back();
    REQUIRE(submit.says("recovering from the newest state in memory"));
    cluster.head.send(SIGTERM);
    CHECK(cluster.head.wait() == 0);
    CHECK(submit.wait() == 75);

    Process head(here, {"head", "--listen", address, "--events", "127.0.0.1:0"});
    REQUIRE(head.says("run many continues after step"));
    cluster.start_node("gamma");
    Process follow(here, {"attach", "many", "--head", address, "--output", "plain"});
    CHECK(follow.wait() == 0);
    INFO(head.said() << follow.said());
    CHECK(digest(here, "many") == one);
    check_audit(here, "many", 100);
    // Nothing was saved on disk before the end, and yet the run did not begin anew.
    const auto times = times_done(here, "many");
    CHECK(times.at(1) == 1);
    for (const auto& node : cluster.nodes) node->send(SIGTERM);
    for (const auto& node : cluster.nodes) CHECK(node->wait() == 0);
    head.send(SIGTERM);
    CHECK(head.wait() == 0);
  }
  CHECK(leavings(here) == before);
  CHECK(processes_of_program(here) == 0);
}
