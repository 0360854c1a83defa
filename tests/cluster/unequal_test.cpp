// Unequal nodes, and the choices that a run makes for them and keeps.

#include <signal.h>

#include "catch.h"
#include "cluster/cluster.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

std::vector<std::string> submit_words(const std::vector<std::string>& settings) {
  return with(with({"submit", "gpt.toml", "--wait", "--output", "plain"},
                   {"name=many", "precision.compute=auto", "pipeline.stages=2", "log.every=5"}),
              settings);
}

}  // namespace

TEST_CASE("a run uses the best precision of all its nodes and names those that lack a better one",
          "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  const auto one = digest_of_one(here, {"precision.compute=fp32"});
  Cluster cluster(here, {});
  cluster.start_node("alpha", {"--precision", "bf16-pairs"});
  cluster.start_node("beta", {"--precision", "fp32"});
  Process submit(here, submit_words({}));
  CHECK(submit.says("precision fp32, the fastest that all nodes support; beta: at most fp32"));
  CHECK(submit.wait() == 0);
  INFO(submit.said());
  CHECK(digest(here, "many") == one);
  const Ended plan =
      troupe::tests::troupe(here, with({"plan", "gpt.toml", "--head", head_of(here)},
                                       {"precision.compute=auto", "pipeline.stages=2"}));
  CHECK(plan.code == 0);
  CHECK(plan.out.starts_with(
      "precision fp32, the fastest that all nodes support; beta: at most fp32"));
  CHECK(plan.out.find("expected time of a step: ") != std::string::npos);
  CHECK(plan.out.find(" GFLOP/s") != std::string::npos);
  cluster.end();
}

TEST_CASE("a run keeps its precision, whatever nodes come and whatever head leads it",
          "[cluster]") {
  const Workplace here;
  const auto before = leavings(here);
  here.write("gpt.toml", gpt);
  const std::vector<std::string> settings{"train.steps=200", "checkpoint.every=10 steps"};
  const auto one = digest_of_one(here, {"train.steps=200", "precision.compute=bf16-pairs"});
  std::string address;
  {
    Cluster cluster(here, {});
    address = head_of(here);
    cluster.start_node("alpha", {"--precision", "bf16-blocks"});
    cluster.start_node("slow", {"--precision", "fp32"});
    cluster.start_node("beta", {"--precision", "bf16-pairs"});
    Process submit(here, submit_words(settings));
    // Enough nodes for the run have a better precision than the worst node.
    CHECK(
        submit.says("precision bf16-pairs, the fastest that enough nodes support; slow: at most "
                    "fp32, and is not used"));
    CHECK(cluster.nodes[1]->says(
        "not used by run many: its precision is bf16-pairs; slow: at most fp32"));
    INFO(submit.said());
    REQUIRE(submit.says("placement: alpha: device 0; beta: device 1"));
    REQUIRE(submit.says("step 30 "));
    cluster.nodes.back()->send(SIGKILL);
    cluster.nodes.pop_back();
    // One node is better than two of which one lacks the precision.
    CHECK(submit.says("placement: alpha: device 0 1"));
    CHECK(submit.says("recovered in"));
    cluster.start_node("later", {"--precision", "fp32"});
    CHECK(cluster.nodes.back()->says("not used by run many"));
    cluster.head.send(SIGKILL);
    CHECK(cluster.head.wait() == 137);
    for (const auto& node : cluster.nodes) node->send(SIGTERM);
    for (const auto& node : cluster.nodes) node->wait();
    submit.send(SIGKILL);
  }
  Process head(here, {"head", "--listen", address, "--events", "127.0.0.1:0"});
  REQUIRE(head.says("run many continues after step"));
  REQUIRE(head.says("troupe submit"));
  Process slow(here, {"node", "--name", "slow", "--precision", "fp32"});
  CHECK(slow.says("not used by run many"));
  Process gamma(here, {"node", "--name", "gamma", "--precision", "bf16-pairs"});
  Process follow(here, {"attach", "many", "--head", address, "--output", "plain"});
  INFO(head.said() << follow.said());
  CHECK(follow.wait() == 0);
  for (const auto& told : events(here, "many", "run.chosen"))
    CHECK(*told.find("precision")->text() == "bf16-pairs");
  CHECK(digest(here, "many") == one);
  for (Process* node : {&slow, &gamma}) node->send(SIGTERM);
  for (Process* node : {&slow, &gamma}) CHECK(node->wait() == 0);
  head.send(SIGTERM);
  CHECK(head.wait() == 0);
  CHECK(leavings(here) == before);
  CHECK(processes_of_program(here) == 0);
}

TEST_CASE("a step detects data files that differ between the blocks of their digest", "[cluster]") {
  constexpr std::size_t place = 16389;  // The byte belongs to step 17.
  const Workplace here;
  const Workplace there;
  std::string book(std::size_t{5} << 20, 'a');
  for (std::size_t at = 0; at < book.size(); ++at) book[at] = static_cast<char>('a' + at % 23);
  here.write("book.txt", book);
  book[place] = 'z';
  there.write("book.txt", book);
  here.write("gpt.toml", gpt);
  Cluster cluster(here, {"alpha"});
  Process beta(there, {"node", "--name", "beta", "--head", head_of(here), "--cores", "1"});
  REQUIRE(beta.says("joined"));
  const Ended ended = troupe::tests::troupe(
      here, with({"submit", "gpt.toml", "--wait", "-q", "--head", head_of(here)},
                 {"name=many", "data.train=book.txt", "data.validate=book.txt",
                  "data.order=sequential", "model.vocab=256", "model.context=64", "train.steps=30",
                  "train.eval_every=30", "pipeline.stages=2", "elastic.nodes=2:2"}));
  CHECK(ended.code == 1);
  INFO(ended.err << cluster.head.said());
  CHECK(ended.err.find("read different bytes for the same samples") != std::string::npos);
  for (const auto& step : events(here, "many", "step")) {
    INFO(to_json(step));
    CHECK(*step.find("step")->integer() < 17);
  }
  beta.send(SIGTERM);
  CHECK(beta.wait() == 0);
  cluster.end();
}

TEST_CASE("a run plays whichever schedule is best for its nodes", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  const auto one = digest_of_one(here, {});
  const std::vector<std::string> open{"pipeline.schedule=auto", "pipeline.stages=2", "name=many"};
  Cluster cluster(here, {"alpha", "beta"});
  const Ended ended = troupe::tests::troupe(
      here, with({"submit", "gpt.toml", "--wait", "-q", "--head", head_of(here)}, open));
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(digest(here, "many") == one);
  cluster.end();
  CHECK(troupe::tests::troupe(
            here, with(with({"train", "gpt.toml", "--nodes", "2", "-q"}, open), {"name=local"}))
            .code == 0);
  CHECK(digest(here, "local") == one);
}

TEST_CASE("a run that is resumed uses the precision of its checkpoint", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  const auto one = digest_of_one(here, {"precision.compute=bf16-pairs"});
  const auto train = [&](const std::vector<std::string>& settings,
                         const std::vector<std::string>& more) {
    auto words = with({"train", "gpt.toml", "-q", "--set", "name=two"}, settings);
    words.insert(words.end(), more.begin(), more.end());
    return troupe::tests::troupe(here, words);
  };
  REQUIRE(train({"precision.compute=bf16-pairs", "train.steps=6"}, {}).code == 0);
  const Ended other = train({"precision.compute=fp32"}, {"--resume"});
  CHECK(other.code == 3);
  CHECK(other.err.find("precision.compute") != std::string::npos);
  const Ended resumed = train({"precision.compute=auto"}, {"--resume"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(digest(here, "two") == one);
}

TEST_CASE("a run whose nodes lack its precision fails with that reason", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  REQUIRE(troupe::tests::troupe(
              here, with({"train", "gpt.toml", "-q"},
                         {"name=many", "precision.compute=bf16-pairs", "train.steps=6"}))
              .code == 0);
  Cluster cluster(here, {});
  cluster.start_node("slow", {"--precision", "fp32"});
  // Each limit must be shorter than the next.
  auto words = submit_words({"limits.reconnect_patience=500ms", "limits.stuck_floor=600ms",
                             "limits.head_patience=1s", "limits.suspend_patience=1500ms"});
  words.insert(words.end(), {"--resume", "--head", head_of(here)});
  const Ended ended = troupe::tests::troupe(here, words);
  INFO(ended.err);
  CHECK(ended.code == 6);
  CHECK(ended.err.find("there are 0 nodes that compute in bf16-pairs, but the run wants 1 at least "
                       "(elastic.nodes); slow: at most fp32; they can be used with "
                       "precision.compute = \"bf16-pairs\" named") != std::string::npos);
  cluster.end();
}

TEST_CASE("a node with more cores gets more of the model, and no bit changes", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  const auto one = digest_of_one(here, {});
  Cluster cluster(here, {});
  cluster.start_node("small", {"--cores", "1"});
  cluster.start_node("big", {"--cores", "3"});
  Process submit(here, with({"submit", "gpt.toml", "--wait", "--output", "plain"},
                            {"name=many", "pipeline.stages=2"}));
  CHECK(submit.wait() == 0);
  INFO(submit.said());
  CHECK(digest(here, "many") == one);
  const auto told = events(here, "many", "run.chosen");
  REQUIRE(told.size() == 1);
  const auto& cuts = *told.front().find("stages")->list();
  REQUIRE(cuts.size() == 3);
  const auto layers = [&](std::size_t device) {
    return *cuts[device + 1].integer() - *cuts[device].integer();
  };
  const bool big_is_first =
      submit.said().find("placement: big: device 0; small: device 1") != std::string::npos;
  if (!big_is_first)
    CHECK(submit.said().find("placement: small: device 0; big: device 1") != std::string::npos);
  CHECK(layers(big_is_first ? 0 : 1) == 3);
  CHECK(layers(big_is_first ? 1 : 0) == 1);

  const Ended plan =
      troupe::tests::troupe(here, {"plan", "gpt.toml", "--head", head_of(here), "--set",
                                   "pipeline.stages=2", "--output", "json"});
  INFO(plan.err);
  REQUIRE(plan.code == 0);
  const auto figures = parse_json(plan.out);
  REQUIRE(figures);
  CHECK(to_json(*figures->find("chosen")->find("stages")) == to_json(*told.front().find("stages")));
  const auto& speeds = *figures->find("measured")->find("nodes")->list();
  REQUIRE(speeds.size() == 2);
  for (const auto& speed : speeds) {
    CHECK(speed.find("plain")->number() > 1e6);
    CHECK(speed.find("seconds_ago")->number() > 0);
  }
  cluster.end();
}
