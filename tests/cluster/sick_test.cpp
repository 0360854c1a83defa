// Nodes with a defect that other nodes do not have.

#include <signal.h>

#include <algorithm>
#include <optional>

#include "catch.h"
#include "cluster/cluster.h"
#include "cluster/stopped_thread.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

std::string book() {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "line " + std::to_string(i * i) + "\n";
  return text;
}

const std::vector<std::string> of_a_book{"data.train=book.txt", "data.validate=book.txt",
                                         "model.vocab=256"};

std::vector<std::string> words_for_two(const std::vector<std::string>& settings) {
  return with(with({"submit", "gpt.toml", "--wait", "--output", "plain"},
                   {"name=many", "pipeline.stages=2", "log.every=5"}),
              settings);
}

}  // namespace

TEST_CASE("a run excludes a node that lacks what all other nodes have", "[cluster]") {
  const Workplace here;
  const Workplace elsewhere;
  const auto before = leavings(here);
  here.write("gpt.toml", gpt);
  here.write("book.txt", book());
  const auto one = digest_of_one(here, of_a_book);
  {
    Cluster cluster(here, {});
    Process sick(elsewhere, {"node", "--name", "sick", "--head", head_of(here)});
    REQUIRE(sick.says("joined"));
    for (const std::string name : {"alpha", "beta"}) cluster.start_node(name);
    Process submit(here, words_for_two(of_a_book));
    const auto code = submit.wait();
    INFO(submit.said() << sick.said());
    CHECK(code == 0);
    CHECK(submit.says("placement: sick: device 0; alpha: device 1"));
    CHECK(submit.says("book.txt: cannot open: No such file or directory"));
    CHECK(submit.says("node sick is not used for a while if other nodes suffice"));
    CHECK(submit.says("placement: beta: device 0; alpha: device 1"));
    CHECK(sick.says("not used by run many: something failed on it: "));
    CHECK(digest(here, "many") == one);
    // The node is used if no other is left; then the run fails.
    for (const auto& node : cluster.nodes) {
      node->send(SIGTERM);
      node->wait();
    }
    cluster.nodes.clear();
    Process alone(here, with(words_for_two(of_a_book), {"name=alone"}));
    CHECK(alone.wait() == 1);
    INFO(alone.said());
    CHECK(alone.said().find("given up: the same failure occurred twice at the same place") !=
          std::string::npos);
    sick.send(SIGTERM);
    CHECK(sick.wait() == 0);
    cluster.end();
  }
  CHECK(leavings(here) == before);
  CHECK(processes_of_program(here) == 0);
}

TEST_CASE("a run excludes a node whose device never finishes a computation", "[cluster]") {
  const Workplace here;
  const auto before = leavings(here);
  here.write("gpt.toml", gpt);
  const std::vector<std::string> settings{"train.steps=100"};
  const auto one = digest_of_one(here, settings);
  {
    Cluster cluster(here, {"sick", "alpha", "beta"});
    Process submit(here, with(words_for_two(settings),
                              {"elastic.copies=1", "log.every=1", "limits.stuck_floor=1100ms"}));
    const bool has_begun = submit.says("step 3 ");
    INFO(submit.said() << cluster.head.said());
    REQUIRE(has_begun);
    const auto threads = threads_of(cluster.node_process(0));
    const auto computing = std::ranges::find_if(
        threads, [](const Thread& thread) { return thread.name.starts_with("device "); });
    REQUIRE(computing != threads.end());
    std::optional<StoppedThread> hangs(computing->id);
    if (hangs->has() == StoppedThread::Has::no_right) {
      WARN("no right to stop a thread of another process: nothing is tested");
      return;
    }
    const auto code = submit.wait();
    INFO(submit.said());
    CHECK(code == 0);
    CHECK(submit.said().find("device 0: ") != std::string::npos);
    CHECK(submit.said().find("node sick is not used for a while") != std::string::npos);
    CHECK(submit.said().find("placement: beta: device 0; alpha: device 1") != std::string::npos);
    CHECK(digest(here, "many") == one);
    hangs.reset();
    cluster.end();
  }
  CHECK(leavings(here) == before);
  CHECK(processes_of_program(here) == 0);
}

TEST_CASE("a run excludes a node that does not prepare in time", "[cluster]") {
  const Workplace here;
  const auto before = leavings(here);
  here.write("gpt.toml", gpt);
  const auto one = digest_of_one(here, {});
  {
    Cluster cluster(here, {"sick", "alpha", "beta"});
    const auto sick = cluster.node_process(0);
    kill(sick, SIGSTOP);
    Process submit(here, with(words_for_two({}), {"limits.prepare_patience=150ms"}));
    CHECK(submit.says("it has not prepared within 0.15 s"));
    CHECK(submit.says("node sick is not used for a while if other nodes suffice"));
    kill(sick, SIGCONT);
    const auto code = submit.wait();
    INFO(submit.said());
    CHECK(code == 0);
    CHECK(submit.said().find("placement: beta: device 0; alpha: device 1") != std::string::npos);
    CHECK(digest(here, "many") == one);
    cluster.end();
  }
  CHECK(leavings(here) == before);
  CHECK(processes_of_program(here) == 0);
}

TEST_CASE("a node that pauses for less than limits.silence_floor is not lost", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  Cluster cluster(here, {"alpha"});
  Process submit(here,
                 with({"submit", "gpt.toml", "--wait", "--output", "plain"},
                      {"name=patient", "train.steps=60", "log.every=1", "limits.silence_floor=20s",
                       "limits.reconnect_patience=30s", "limits.stuck_floor=40s"}));
  REQUIRE(submit.says("step 5 "));
  const auto node = cluster.node_process(0);
  kill(node, SIGSTOP);
  cluster.head.listen(std::chrono::seconds(3));
  kill(node, SIGCONT);
  const auto code = submit.wait();
  INFO(submit.said() << cluster.head.said());
  CHECK(code == 0);
  CHECK(cluster.head.said().find("is lost") == std::string::npos);
  for (const auto& [step, times] : times_done(here, "patient")) CHECK(times == 1);
  cluster.end();
}
