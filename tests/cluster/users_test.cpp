// Users that may give a head orders, the record of their orders, and the files that a run may name.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "catch.h"
#include "cluster/cluster.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

/// A head with keys, and the arguments for a client with a key.
struct KeyedHead {
  const Workplace& here;
  std::string public_key;
  std::unique_ptr<Process> head;

  KeyedHead(const Workplace& place, const std::vector<std::string>& more) : here(place) {
    const auto own = line_of("head", "operator");
    public_key = own.substr(own.find_last_of(' ') + 1);
    here.write("hosts.allow", line_of("me", "operator") + "\n" + line_of("guest", "viewer") + "\n");
    std::vector<std::string> words{"--keys", "head.key", "--allow", "hosts.allow"};
    words.insert(words.end(), more.begin(), more.end());
    head = std::make_unique<Process>(here, head_words(words));
    REQUIRE(head->says("troupe submit"));
  }
  Ended by(const std::string& who, std::vector<std::string> words) const {
    const std::vector<std::string> more{"--head",     head_of(here), "--keys",
                                        who + ".key", "--head-key",  public_key};
    words.insert(words.end(), more.begin(), more.end());
    return tests::troupe(here, words);
  }

 private:
  /// Returns the line of a new key for the list of hosts.
  std::string line_of(const std::string& name, const std::string& roles) const {
    const Ended made = tests::troupe(here, {"keys", "new", name, "--roles", roles});
    REQUIRE(made.code == 0);
    std::istringstream lines(made.out);
    std::string last;
    for (std::string line; std::getline(lines, line);) last = line;
    return last;
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a head without keys refuses other users of the machine and tells them why",
          "[cluster]") {
  if (geteuid() != 0) {
    WARN("skipped: only root can be another user");
    return;
  }
  const Workplace here;
  std::filesystem::permissions(here.path(), std::filesystem::perms(0755));
  Cluster cluster(here, {"alpha"});
  Launch launch;
  launch.arguments = {"runs", "--head", head_of(here)};
  // Opens the program beforehand, since that user may lack access to the folders above it.
  launch.before_start = [&] {
    const int program = open(TROUPE_PROGRAM, O_PATH);
    std::vector<char*> words{const_cast<char*>("troupe")};
    for (auto& word : launch.arguments) words.push_back(word.data());
    words.push_back(nullptr);
    if (setresuid(65534, 65534, 65534) == 0) fexecve(program, words.data(), environ);
    _exit(126);
  };
  const Ended other = tests::troupe(here, launch);
  CHECK(other.code == 5);
  CHECK(has(other.err, "without keys a head serves only the user who started it"));
  CHECK(cluster.head.says("it is user 65534 of this machine, and without keys only user 0"));
  CHECK(tests::troupe(here, {"runs", "--head", head_of(here)}).code == 0);
  cluster.end();
}

TEST_CASE("a head records who gave which order", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  Cluster cluster(here, {"alpha"});
  const auto address = head_of(here);
  REQUIRE(tests::troupe(here, with({"submit", "gpt.toml", "--wait", "-q", "--head", address},
                                   {"name=told", "train.steps=2"}))
              .code == 0);
  REQUIRE(tests::troupe(here, {"nodes", "cordon", "alpha", "--head", address}).code == 0);
  REQUIRE(tests::troupe(here, {"runs", "--head", address}).code == 0);
  const auto journal = here.read(".troupe/journal");
  const std::string by = "\"by\":\"user " + std::to_string(geteuid()) + "\",\"order\":\"";
  CHECK(has(journal, by + "run.submit\",\"subject\":\"told\""));
  CHECK(has(journal, by + "node.cordon\",\"subject\":\"alpha\""));
  CHECK_FALSE(has(journal, "run.list"));
  cluster.end();
}

TEST_CASE("a head with keys opens no file outside its folders, and viewers cannot give orders",
          "[cluster]") {
  const Workplace here, elsewhere;
  here.write("gpt.toml", gpt);
  elsewhere.write("book.txt", std::string(20'000, 'a'));
  const auto outside = elsewhere.path().string();
  std::filesystem::create_symlink(outside, here.path() / "link");
  {
    const KeyedHead keyed(here, {});
    const auto submit = [&](const std::string& setting) {
      return keyed.by("me", with({"submit", "gpt.toml"}, {"name=out", setting}));
    };
    for (const std::string setting :
         {"data.train=/etc/passwd", "data.train=../book.txt", "data.train=link/book.txt",
          "checkpoint.dir=/tmp/x", "train.export=/tmp/final.safetensors",
          "model.init=/tmp/base.safetensors"}) {
      const Ended refused = submit(setting);
      INFO(setting << refused.err);
      CHECK(refused.code == 3);
      CHECK(has(refused.err, "leads out of the folders that this head may use"));
      CHECK(has(refused.err, "--allow-path"));
    }
    const Ended asked = keyed.by("guest", {"runs"});
    INFO(asked.err);
    CHECK(asked.code == 0);
    const Ended ordered = keyed.by("guest", with({"submit", "gpt.toml"}, {"name=guest"}));
    CHECK(ordered.code != 0);
    CHECK(has(ordered.err, "a key with the roles viewer may not send 'run.submit'"));
    CHECK_FALSE(has(here.read(".troupe/journal"), "\"subject\":\"guest\""));
    keyed.head->send(SIGTERM);
    CHECK(keyed.head->wait() == 0);
  }
  for (const auto* key : {"head.key", "me.key", "guest.key"})
    std::filesystem::remove(here.path() / key);
  const KeyedHead keyed(here, {"--allow-path", outside});
  const Ended allowed = keyed.by(
      "me", with({"submit", "gpt.toml"}, {"name=in", "data.train=" + outside + "/book.txt"}));
  INFO(allowed.err);
  CHECK_FALSE(has(allowed.err, "leads out"));
  keyed.head->send(SIGTERM);
  CHECK(keyed.head->wait() == 0);
}
