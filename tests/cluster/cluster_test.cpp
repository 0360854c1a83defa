// Runs over several processes, with real sockets, shared memory and kills.

#include "cluster/cluster.h"

#include <signal.h>

#include "catch.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

// A model with batch norm, whose running statistics must travel too.
const std::string resnet = R"(
seed = 5
[model]
kind = "resnet"
channels = 1
widths = [8, 16]
blocks = [1, 1]
classes = 10
[data]
train = "made:glyphs?size=16"
[batch]
global = 8
micro  = 2
[optimizer]
kind = "sgd"
lr   = 0.05
momentum = 0.9
[precision]
compute = "fp32"
[pipeline]
stages = 1
[train]
steps = 4
)";

}  // namespace

TEST_CASE("a run over many processes has the bits of one", "[cluster]") {
  const Workplace here;
  const auto before = leavings(here);
  here.write("gpt.toml", gpt);
  here.write("resnet.toml", resnet);
  const auto train = [&](const std::string& config, const std::string& name,
                         std::vector<std::string> settings,
                         const std::vector<std::string>& more = {}) {
    settings.push_back("name=" + name);
    auto words = with({"train", config, "-q"}, settings);
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = troupe::tests::troupe(here, words);
    INFO(config << " as " << name << ": " << ended.err);
    REQUIRE(ended.code == 0);
    return digest(here, name);
  };
  const auto one_gpt = train("gpt.toml", "one", {});
  const auto one_resnet = train("resnet.toml", "resnet", {});
  REQUIRE(!one_gpt.empty());

  struct Case {
    std::string nodes;
    std::vector<std::string> settings;
    std::string carrier = "auto";
  };
  int number = 0;
  for (const auto& [nodes, settings, carrier] : std::vector<Case>{
           {"1", {"pipeline.stages=2"}},
           {"2", {"pipeline.stages=2"}},
           {"2", {"pipeline.stages=2", "pipeline.schedule=zb-h1"}, "tcp"},
           {"2", {"pipeline.replicas=2"}},
           {"3", {"pipeline.stages=2", "pipeline.replicas=2"}},
           {"4", {"pipeline.replicas=4"}, "tcp"},
           {"4", {"pipeline.stages=4", "pipeline.recompute=true"}, "tcp"},
           {"2", {"pipeline.stages=4", "pipeline.chunks=2", "pipeline.schedule=interleaved"}},
           {"2", {"pipeline.stages=2", "pipeline.schedule=dualpipe", "pipeline.chunks=1"}},
           {"8", {"pipeline.stages=4", "pipeline.replicas=2"}},
           {"2", {"pipeline.replicas=2", "parallel.exchange=server"}, "tcp"},
           {"4", {"pipeline.stages=2", "pipeline.replicas=2", "parallel.exchange=server"}},
           {"4", {"pipeline.replicas=4", "parallel.exchange=server"}},
           {"8", {"pipeline.stages=2", "pipeline.replicas=4"}, "tcp"},
       }) {
    const auto name = "many-" + std::to_string(number++);
    CHECK(train("gpt.toml", name, settings, {"--nodes", nodes, "--carrier", carrier}) == one_gpt);
  }
  CHECK(train("resnet.toml", "resnet-2", {"pipeline.stages=2", "pipeline.replicas=2"},
              {"--nodes", "3"}) == one_resnet);
  CHECK(leavings(here) == before);
  CHECK(processes_of_program(here) == 0);
}

TEST_CASE("an asynchronous run over processes has the bits of a run in one process", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  for (const std::string preset : {"stale", "ws", "msnag", "ws_msnag_ga"}) {
    const std::vector<std::string> settings{"pipeline.stages=2", "pipeline.schedule=pipedream",
                                            "model.tied=false", "staleness.preset=" + preset};
    auto here_words = with({"train", "gpt.toml", "-q", "--set", "name=here"}, settings);
    auto there_words =
        with({"train", "gpt.toml", "-q", "--nodes", "2", "--set", "name=there"}, settings);
    const Ended one = troupe::tests::troupe(here, here_words);
    INFO(preset << ": " << one.err);
    REQUIRE(one.code == 0);
    const Ended two = troupe::tests::troupe(here, there_words);
    INFO(two.err);
    REQUIRE(two.code == 0);
    CHECK(digest(here, "there") == digest(here, "here"));
  }
}

TEST_CASE("asynchronous replicas with another gradient exchange have the same bits", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  for (const std::string preset : {"ws", "msnag", "ws_msnag_ga"}) {
    std::vector<std::string> settings{"pipeline.stages=2", "pipeline.schedule=pipedream",
                                      "pipeline.replicas=2", "model.tied=false",
                                      "staleness.preset=" + preset};
    const auto train = [&](const std::string& name, const std::string& exchange,
                           const std::vector<std::string>& more) {
      auto words = with({"train", "gpt.toml", "-q"}, settings);
      words.insert(words.end(),
                   {"--set", "name=" + name, "--set", "parallel.exchange=" + exchange});
      words.insert(words.end(), more.begin(), more.end());
      const Ended ended = troupe::tests::troupe(here, words);
      INFO(preset << ", " << exchange << ": " << ended.err);
      REQUIRE(ended.code == 0);
      return digest(here, name);
    };
    const auto wanted = train("here", "server", {});
    CHECK(train("there", "all_to_all", {"--nodes", "4"}) == wanted);
    CHECK(train("tcp", "all_to_all", {"--nodes", "2", "--carrier", "tcp"}) == wanted);
  }
}

TEST_CASE("a run continues without a node that is killed, and has the same bits", "[cluster]") {
  const Workplace here;
  const auto before = leavings(here);
  here.write("gpt.toml", gpt);
  const Ended one = troupe::tests::troupe(
      here, with({"train", "gpt.toml", "-q"}, {"name=one", "train.steps=150"}));
  INFO(one.err);
  REQUIRE(one.code == 0);
  {
    Cluster cluster(here, {"alpha", "beta"});
    Process submit(here,
                   with({"submit", "gpt.toml", "--wait", "--output", "plain"},
                        {"name=many", "train.steps=150", "pipeline.stages=2", "log.every=5"}));
    INFO(submit.said());
    REQUIRE(submit.says("step 45 "));
    cluster.nodes[0]->send(SIGKILL);
    cluster.start_node("gamma");
    const auto code = submit.wait();
    INFO(submit.said());
    CHECK(code == 0);
    CHECK(submit.said().find("recovering from the newest state in memory") != std::string::npos);
    CHECK(cluster.head.says("node alpha is lost"));
    const Ended runs = troupe::tests::troupe(here, {"runs", "--head", head_of(here)});
    CHECK(runs.out.find("150/150") != std::string::npos);
    for (std::size_t i = 1; i < cluster.nodes.size(); ++i) cluster.nodes[i]->send(SIGTERM);
    cluster.head.send(SIGTERM);
    CHECK(cluster.head.wait() == 0);
  }
  CHECK(digest(here, "many") == digest(here, "one"));
  CHECK(leavings(here) == before);
  CHECK(processes_of_program(here) == 0);
}

TEST_CASE("a head with keys admits only keys on its list", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  const auto make_key = [&](const std::string& name, const std::string& roles) {
    const Ended made = troupe::tests::troupe(here, {"keys", "new", name, "--roles", roles});
    INFO(made.err);
    REQUIRE(made.code == 0);
    return made.out.substr(made.out.find('\n') + 1);  // The line for the list of hosts.
  };
  const auto key_in = [](const std::string& line) { return line.substr(line.rfind(' ') + 1, 40); };
  const auto head_key = key_in(make_key("head", "node"));
  here.write("hosts.allow", make_key("alpha", "node") + make_key("me", "operator"));
  make_key("stranger", "operator");
  CHECK(troupe::tests::troupe(here, head_words({"--keys", "head.key"})).code == 2);

  Process head(here, head_words({"--keys", "head.key", "--allow", "hosts.allow"}));
  INFO(head.said());
  REQUIRE(head.says("troupe submit"));
  const std::string address = head_of(here);
  Process node(here, {"node", "--keys", "alpha.key", "--head-key", head_key});
  REQUIRE(node.says("joined"));
  const auto ask = [&](const std::string& key) {
    return troupe::tests::troupe(here, {"submit", "gpt.toml", "--wait", "--head", address, "--keys",
                                        key, "--head-key", head_key});
  };
  const Ended known = ask("me.key");
  INFO(known.err);
  CHECK(known.code == 0);
  const Ended stranger = ask("stranger.key");
  CHECK(stranger.code == 5);
  CHECK(stranger.err.find("does not know this key") != std::string::npos);
  const Ended node_itself = ask("alpha.key");
  CHECK(node_itself.code == 5);
  CHECK(node_itself.err.find("which may not send requests") != std::string::npos);
  const Ended plain = troupe::tests::troupe(here, {"status", "--head", address});
  CHECK(plain.code == 5);
}

TEST_CASE("commands report an error of one line if they cannot reach or use a head", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  const Ended nobody = troupe::tests::troupe(here, {"submit", "gpt.toml", "--head", "127.0.0.1:1"});
  CHECK(nobody.code == 5);
  CHECK(nobody.err.find("no head answered at tcp://127.0.0.1:1") != std::string::npos);

  Cluster cluster(here, {});
  const std::string address = head_of(here);
  REQUIRE(!address.empty());
  const Ended second = troupe::tests::troupe(
      here, {"head", "--listen", address, "--events", "127.0.0.1:0", "--state", "other"});
  CHECK(second.code == 1);
  CHECK(second.err.find("another program listens there") != std::string::npos);

  const Ended open = troupe::tests::troupe(
      here, {"head", "--listen", "0.0.0.0:0", "--events", "127.0.0.1:0", "--state", "other"});
  CHECK(open.code == 1);
  CHECK(open.err.find("without keys everyone on the network could control this head") !=
        std::string::npos);

  const Ended unknown = troupe::tests::troupe(here, {"stop", "nothing", "--head", address});
  CHECK(unknown.code == 1);
  CHECK(unknown.err.find("no run is called 'nothing'") != std::string::npos);

  here.write("bad.toml", gpt + "\n[batch2]\nglobal = 1\n");
  const Ended bad = troupe::tests::troupe(here, {"submit", "bad.toml", "--head", address});
  CHECK(bad.code == 3);
  CHECK(bad.err.find("batch2") != std::string::npos);
  const Ended cut = troupe::tests::troupe(
      here, {"submit", "gpt.toml", "--set", "pipeline.tensor=2", "--head", address});
  CHECK(cut.code == 3);
  CHECK(cut.err.find("pipeline.tensor = 2: this version does not support tensor parallelism") !=
        std::string::npos);

  // No node comes, so the run fails with the reason.
  const Ended alone = troupe::tests::troupe(
      here, with({"submit", "gpt.toml", "--wait", "--head", address},
                 {"name=alone", "limits.start_patience=300ms", "limits.strikes=1"}));
  CHECK(alone.code == 6);
  CHECK(alone.err.find("there are 0 nodes, but the run wants 1 at least") != std::string::npos);
}
