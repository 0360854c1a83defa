// Lying members of a cluster: they join like honest nodes, and their messages are well formed.

#include "cluster/liar.h"

#include <signal.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/player_id.h"
#include "catch.h"
#include "cluster/cluster.h"
#include "transport/keys/keys.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

/// An honest run of two nodes over 150 steps, about which other members lie.
struct HonestRun {
  const Workplace here;
  std::string one;
  std::unique_ptr<Cluster> cluster;
  std::unique_ptr<Process> submit;

  explicit HonestRun(const std::vector<std::string>& head = {}) {
    here.write("gpt.toml", gpt);
    one = digest_of_one(here, {"train.steps=150"});
    cluster = std::make_unique<Cluster>(here, std::vector<std::string>{"alpha", "beta"},
                                        std::vector<std::string>{}, head);
    submit = std::make_unique<Process>(
        here, with({"submit", "gpt.toml", "--wait", "--output", "plain"},
                   {"name=many", "train.steps=150", "pipeline.stages=2", "log.every=1"}));
    REQUIRE(submit->says("step 10 "));
  }
  Process& head() { return cluster->head; }

  /// Checks that the run ends as if nobody had lied.
  void end() {
    const auto code = submit->wait();
    INFO(head().said() << submit->said());
    CHECK(code == 0);
    CHECK(digest(here, "many") == one);
    for (const auto& [step, times] : times_done(here, "many")) CHECK(times == 1);
    cluster->end();
  }
};

transport::Message played(int device, std::int64_t first_step) {
  auto message = Liar::about("many", "round_played");
  message.body.set("attempt", 1);
  message.body.set("replica", 0);
  message.body.set("device", device);
  message.body.set("first_step", first_step);
  message.body.set("purpose", "training");
  message.body.set("most_parcels", 1);
  message.body.set("to", transport::to_value(actors::the_supervisor));
  return message;
}

}  // namespace

TEST_CASE("a report about a run in which a node has no part counts against that node only",
          "[cluster]") {
  HonestRun run;
  Liar liar(head_of(run.here));
  REQUIRE(liar.join("evil"));
  for (const auto& [device, step] :
       {std::pair<int, std::int64_t>{0, 999'999'999}, {268'435'456, 0}, {300, 11}, {-1, -1}})
    liar.say(played(device, step));
  CHECK(run.head().says("sent a message that it must not send"));
  for (int more = 0; more < 10; ++more) liar.say(played(0, 12));
  CHECK(liar.is_thrown_out());
  CHECK(run.head().says("node evil is lost: disconnected"));
  run.end();
}

TEST_CASE("only a node with a newer head's proof can end a head by its term", "[cluster]") {
  constexpr std::uint64_t forged = 1'000'000'000;
  const Workplace here;
  Process head(here, head_words({"--supervised"}));
  REQUIRE(head.says("troupe submit"));
  const auto address = head_of(here);
  const auto heads = children_of(head.id());

  Liar liar(address);
  CHECK_FALSE(liar.join("evil", forged));  // The welcome never comes.
  CHECK(head.says("found term 1000000000 without a proof, wanted at most 1"));
  auto stamped = message_of("status");
  stamped.term = forged;
  for (int i = 0; i < 10; ++i) liar.say_unnumbered(stamped);
  CHECK(liar.is_thrown_out());

  // Everybody can run this command.
  const Ended node = tests::troupe(
      here, {"node-process", "--head", address, "--cores", "1", "--term", "1000000000"});
  CHECK(node.code == 5);
  CHECK(node.err.find("term") != std::string::npos);

  Liar honest(address);
  CHECK(honest.join("alpha"));
  CHECK(children_of(head.id()) == heads);
  head.send(SIGTERM);
  CHECK(head.wait() == 0);
}

TEST_CASE("a notice of a node's end must contain the secret of its process", "[cluster]") {
  HonestRun run;
  Liar liar(head_of(run.here));
  const auto notice = [](std::int64_t life) {
    return transport::to_message(
        actors::ExitNotice{life, "was ended by signal 9 (Killed)", "\x1b]0;owned\x07", 9});
  };
  for (std::int64_t life = 1; life < 100; ++life) liar.say_unnumbered(notice(life));
  // Notices of older versions contained host and process id instead.
  auto of_a_process = message_of("exit_notice");
  of_a_process.body.set("host", "here");
  of_a_process.body.set("pid", run.cluster->node_process(0));
  for (int i = 0; i < 10; ++i) liar.say_unnumbered(of_a_process);
  CHECK(liar.is_thrown_out());
  run.end();
  CHECK(run.head().said().find('\x1b') == std::string::npos);
}

TEST_CASE("names and texts of nodes reach terminals only in printable form", "[cluster]") {
  const Workplace here;
  Cluster cluster(here, {});
  const auto address = head_of(here);
  for (const std::string name :
       {"\x1b]0;owned\x07", "a b", "x\nerror: forged", "../../etc", "<b>", "\xc3\xa4"}) {
    Liar liar(address);
    CHECK_FALSE(liar.join(name));
  }
  CHECK_FALSE(Liar(address).join(std::string(65, 'a')));
  {
    auto of_a_bad_host = Liar::introduction("");
    of_a_bad_host.inventory.host = "\x1b[31mred";
    CHECK_FALSE(Liar(address).join(of_a_bad_host));
  }
  Liar liar(address);
  REQUIRE(liar.join(std::string(64, 'a')));
  liar.say(transport::to_message(actors::Leaving{"\x1b[2Jgone\nerror: forged"}));
  CHECK(cluster.head.says("is leaving: ?[2Jgone error: forged"));
  CHECK(cluster.head.said().find('\x1b') == std::string::npos);
  cluster.end();
}

namespace {

/// A head with keys, and the keys of two hosts.
struct Keyed {
  const Workplace here;
  std::string list;
  std::string head_key;
  std::unique_ptr<Cluster> cluster;

  Keyed() {
    make("head", "node");
    list.clear();
    make("alpha", "node,daemon");
    make("beta", "node,daemon");
    allow(list);
    head_key = key_of("head").public_key;
    cluster = std::make_unique<Cluster>(
        here, std::vector<std::string>{}, std::vector<std::string>{},
        std::vector<std::string>{"--keys", "head.key", "--allow", "hosts.allow"});
  }
  void make(const std::string& name, const std::string& roles) {
    const Ended made = tests::troupe(here, {"keys", "new", name, "--roles", roles});
    REQUIRE(made.code == 0);
    list += made.out;
  }
  void allow(const std::string& hosts) const { here.write("hosts.allow", hosts); }
  transport::KeyPair key_of(const std::string& name) const {
    return *transport::read_key_pair((here.path() / (name + ".key")).string());
  }
  LiarKeys keys(const std::string& name) const { return {key_of(name), head_key}; }
  std::string address() const { return head_of(here); }
};

}  // namespace

TEST_CASE("a key is valid only for its host and its processes", "[cluster]") {
  Keyed keyed;
  auto& head = keyed.cluster->head;
  Liar beta(keyed.address(), keyed.keys("beta"));
  auto introduction = Liar::introduction("alpha");
  introduction.life = 4711;
  REQUIRE(beta.join(introduction));
  CHECK(head.says("node beta.alpha has joined"));
  Liar second(keyed.address(), keyed.keys("beta"));
  REQUIRE(second.join("beta-2"));
  CHECK(head.says("node beta-2 has joined"));

  const auto notice = transport::to_message(actors::ExitNotice{4711, "ended", "", 0});
  Liar alpha(keyed.address(), keyed.keys("alpha"));
  alpha.say_unnumbered(notice);
  CHECK(head.says("found a process that was started by another key"));
  second.say_unnumbered(notice);
  CHECK(head.says("node beta.alpha is lost: its process ended"));
  keyed.cluster->end();
}

TEST_CASE("a host that is removed from the list is disconnected at once and not readmitted",
          "[cluster]") {
  Keyed keyed;
  auto& head = keyed.cluster->head;
  Liar alpha(keyed.address(), keyed.keys("alpha"));
  Liar beta(keyed.address(), keyed.keys("beta"));
  REQUIRE(alpha.join("alpha"));
  REQUIRE(beta.join("beta"));
  std::string alone;
  for (std::size_t at = 0; at < keyed.list.size();) {
    const auto end = keyed.list.find('\n', at) + 1;
    const auto line = keyed.list.substr(at, end - at);
    if (!line.starts_with("beta")) alone += line;
    at = end;
  }
  // A list with an error changes nothing.
  keyed.allow("alpha\n");
  CHECK(head.says("the allow list is unchanged: hosts.allow:1: error:"));
  keyed.allow(alone);
  CHECK(head.says("hosts.allow has changed: 1 keys may come"));
  CHECK(beta.is_thrown_out());
  CHECK(head.says("node beta is lost"));
  // The node is silent and may be lost for that, but its connection must not be ended.
  CHECK(head.said().find("node alpha is lost: its connection") == std::string::npos);
  keyed.cluster->end();
}
