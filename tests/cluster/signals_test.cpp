// Service managers and schedulers send SIGTERM to every process of a service at once, and some send
// it twice. Each test plays one of them.

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "catch.h"
#include "cluster/cluster.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

/// A run that saves only when a signal asks for it.
const std::vector<std::string> unsaved{"name=many", "train.steps=100000", "log.every=1",
                                       "checkpoint.every=10m"};

std::int64_t step_of_last_save(const Workplace& here) {
  const auto saved = events(here, "many", "checkpoint.saved");
  return saved.empty() ? 0 : *saved.back().find("step")->integer();
}

/// Signals the child first, before its parent can react.
void terminate_with_children(const Process& process) {
  const auto children = children_of(process.id());
  REQUIRE(!children.empty());
  for (const pid_t child : children) kill(child, SIGTERM);
  process.send(SIGTERM);
}

std::vector<std::string> command_line_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

}  // namespace

TEST_CASE("a node that gets SIGTERM together with its process saves its run", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  Cluster cluster(here, {"alpha"});
  Process submit(here, with({"submit", "gpt.toml", "--wait", "--output", "plain"}, unsaved));
  REQUIRE(submit.says("step 10 "));
  auto& node = *cluster.nodes.front();
  terminate_with_children(node);
  const auto code = node.wait();
  INFO(node.said() << cluster.head.said());
  CHECK(code == 0);
  CHECK(step_of_last_save(here) >= 10);
  CHECK(cluster.head.says("node alpha is leaving: stopped on request"));
}

TEST_CASE("a node that gets SIGTERM twice at once saves its run", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  Cluster cluster(here, {"alpha"});
  Process submit(here, with({"submit", "gpt.toml", "--wait", "--output", "plain"}, unsaved));
  REQUIRE(submit.says("step 10 "));
  auto& node = *cluster.nodes.front();
  for (int i = 0; i < 3; ++i) node.send(i == 1 ? SIGINT : SIGTERM);
  CHECK(node.wait() == 0);
  INFO(node.said() << cluster.head.said());
  CHECK(step_of_last_save(here) >= 10);
}

TEST_CASE("a supervised head that gets SIGTERM together with its process saves its runs",
          "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  Cluster cluster(here, {"alpha"}, {}, {"--supervised"});
  Process submit(here, with({"submit", "gpt.toml", "--wait", "--output", "plain"}, unsaved));
  REQUIRE(submit.says("step 10 "));
  terminate_with_children(cluster.head);
  const auto code = cluster.head.wait();
  INFO(cluster.head.said());
  CHECK(code == 0);
  CHECK(submit.wait() == 75);
  CHECK(step_of_last_save(here) >= 10);
}

TEST_CASE("a head that gets SIGTERM twice at once saves its runs", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  Cluster cluster(here, {"alpha"});
  Process submit(here, with({"submit", "gpt.toml", "--wait", "--output", "plain"}, unsaved));
  REQUIRE(submit.says("step 10 "));
  for (int i = 0; i < 3; ++i) cluster.head.send(i == 1 ? SIGINT : SIGTERM);
  const auto code = cluster.head.wait();
  INFO(cluster.head.said());
  CHECK(code == 0);
  CHECK(submit.wait() == 75);
  CHECK(step_of_last_save(here) >= 10);
}

TEST_CASE("a node that gets SIGTERM a second time after a second ends at once", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  Cluster cluster(here, {"alpha"}, {"--leave-patience", "3600"});
  Process submit(here, with({"submit", "gpt.toml", "--wait", "--output", "plain"}, unsaved));
  REQUIRE(submit.says("step 10 "));
  cluster.head.send(SIGSTOP);  // Stopped, so that the node cannot leave.
  auto& node = *cluster.nodes.front();
  const auto first = std::chrono::steady_clock::now();
  node.send(SIGTERM);
  REQUIRE(node.says("leaving: stopped on request"));
  std::optional<int> code;
  while (!(code = node.wait(std::chrono::seconds(0)))) {
    node.send(SIGTERM);
    node.listen(std::chrono::milliseconds(50));
  }
  INFO(node.said());
  CHECK(code == 128 + SIGTERM);
  CHECK(std::chrono::steady_clock::now() - first >= std::chrono::seconds(1));
}

TEST_CASE("a local run with nodes is saved if all processes get SIGTERM at once", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  Process train(here, with({"train", "gpt.toml", "--nodes", "2", "--output", "plain"}, unsaved));
  REQUIRE(train.says("step 10 "));
  terminate_with_children(train);
  const auto code = train.wait();
  INFO(train.said());
  CHECK(code == 75);
  CHECK(step_of_last_save(here) >= 10);
}

TEST_CASE("a supervised head gets every option of its supervisor", "[cluster]") {
  const Workplace here;
  const Ended keys = tests::troupe(here, {"keys", "new", "me"});
  REQUIRE(keys.code == 0);
  here.write("hosts.allow", keys.out);
  here.write("token", "0123456789abcdef\n");
  for (const char* file : {"hosts.allow", "token"})
    std::filesystem::permissions(here.path() / file, std::filesystem::perms::owner_read);
  const std::map<std::string, std::string> values{{"--listen", "127.0.0.1:0"},
                                                  {"--events", "127.0.0.1:0"},
                                                  {"--http", "off"},
                                                  {"--interface", "127.0.0.1"},
                                                  {"--state", "kept here"},
                                                  {"--keys", "me.key"},
                                                  {"--allow", "hosts.allow"},
                                                  {"--output", "plain"},
                                                  {"--allow-path", "."},
                                                  {"--metrics", "127.0.0.1:0"},
                                                  {"--metrics-token-file", "token"},
                                                  {"--notify", "true"},
                                                  {"--notify-on", "failed"},
                                                  {"--otlp", "http://127.0.0.1:1"}};
  // Uses every option of `head --help`.
  const auto help = tests::troupe(here, {"head", "--help"}).out;
  std::vector<std::string> words{"head"};
  std::size_t count = 0;
  for (auto at = help.find("\n  "); at != std::string::npos; at = help.find("\n  ", at + 1)) {
    auto begin = help.find_first_not_of(' ', at + 1);
    if (help[begin] != '-') continue;  // A continued line.
    const auto line = help.substr(begin, help.find('\n', begin) - begin);
    const auto name =
        line.substr(line.find("--"), line.find_first_of(" \n", line.find("--")) - line.find("--"));
    // The second one excludes --metrics-token-file.
    if (name == "--help" || name == "--metrics-without-token") continue;
    CAPTURE(line);
    ++count;
    words.push_back(name);
    const bool takes_value = line.find(" TEXT") != std::string::npos;
    // A new option needs a value in the table above.
    REQUIRE((values.contains(name) || !takes_value));
    if (takes_value) words.push_back(values.at(name));
  }
  REQUIRE(count >= 9);
  Process head(here, words);
  INFO(head.said());
  REQUIRE(head.says("troupe submit"));
  const auto children = children_of(head.id());
  REQUIRE(children.size() == 1);
  auto child = command_line_of(children.front());
  child.erase(child.begin());  // The program's name.
  CHECK(child == words);
  head.send(SIGTERM);
  CHECK(head.wait() == 0);
}

TEST_CASE("a node that gets SIGTERM ends with the exit code that was configured", "[cluster]") {
  const Workplace here;
  Cluster cluster(here, {"alpha"}, {"--exit-code-on-signal", "75"});
  cluster.nodes.front()->send(SIGTERM);
  CHECK(cluster.nodes.front()->wait() == 75);
}

TEST_CASE("a node that is ended for good leaves its run, and its daemon exits with 0",
          "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  const auto one = digest_of_one(here, {"train.steps=150"});
  Cluster cluster(here, {"alpha", "beta"}, {"--exit-code-on-signal", "75"});
  Process submit(here, with({"submit", "gpt.toml", "--wait", "--output", "plain"},
                            {"name=many", "train.steps=150", "pipeline.stages=2", "log.every=5"}));
  REQUIRE(submit.says("step 45 "));
  const Ended ended = tests::troupe(here, {"nodes", "end", "alpha", "--head", head_of(here)});
  INFO(ended.err << cluster.head.said() << cluster.nodes[0]->said());
  CHECK(ended.code == 0);
  CHECK(ended.out == "alpha has ended\n");
  CHECK(cluster.nodes[0]->wait() == 0);
  CHECK(cluster.head.says("node alpha is lost: its process was stopped permanently\n"));
  CHECK(submit.wait() == 0);
  CHECK(digest(here, "many") == one);
  for (const auto& [step, count] : times_done(here, "many")) CHECK(count == 1);

  // Without a name, all remaining nodes.
  CHECK(tests::troupe(here, {"nodes", "end", "--head", head_of(here)}).code == 0);
  CHECK(cluster.nodes[1]->wait() == 0);
  const Ended nobody = tests::troupe(here, {"nodes", "end", "alpha", "--head", head_of(here)});
  CHECK(nobody.code == 1);
  CHECK(nobody.err.find("no node is called 'alpha'") != std::string::npos);
}

TEST_CASE("a head with --only-submitted does not resume earlier runs", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  const auto one = digest_of_one(here, {"train.steps=150"});
  const std::vector<std::string> order =
      with({"submit", "gpt.toml", "--wait", "--resume", "--output", "plain"},
           {"name=many", "train.steps=150", "log.every=5", "checkpoint.every=10m"});
  {
    Cluster cluster(here, {"alpha"}, {}, {"--only-submitted"});
    REQUIRE(cluster.head.said().find("term 1\n") != std::string::npos);
    Process submit(here, order);
    REQUIRE(submit.says("step 45 "));
    cluster.head.send(SIGTERM);
    CHECK(cluster.head.wait() == 0);
    const auto code = submit.wait();
    INFO(submit.said());
    INFO(code.value_or(-1));
    CHECK(code == 75);
  }
  Cluster cluster(here, {"beta"}, {}, {"--only-submitted"});
  CHECK(cluster.head.said().find("term 2\n") != std::string::npos);
  const Ended runs = tests::troupe(here, {"runs", "--head", head_of(here)});
  CHECK(runs.out.find("stopped") != std::string::npos);
  Process submit(here, order);
  const auto code = submit.wait();
  INFO(submit.said() << cluster.head.said());
  CHECK(code == 0);
  CHECK(digest(here, "many") == one);
  for (const auto& [step, count] : times_done(here, "many")) CHECK(count == 1);
}
