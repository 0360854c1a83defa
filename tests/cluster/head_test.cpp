// A head that dies and restarts.

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <sstream>

#include "catch.h"
#include "cluster/cluster.h"
#include "cluster/liar.h"
#include "core/json.h"
#include "storage/files/records.h"

using namespace troupe;
using namespace troupe::tests;

TEST_CASE("a head that is killed restarts and leads its runs to their end", "[cluster]") {
  const Workplace here;
  const auto before = leavings(here);
  here.write("gpt.toml", gpt);
  const auto one = digest_of_one(here, {"train.steps=150"});

  Process head(here, head_words({"--supervised"}));
  REQUIRE(head.says("troupe submit"));
  const auto address = head_of(here);
  Process alpha(here, {"node", "--name", "alpha", "--cores", "1"});
  Process beta(here, {"node", "--name", "beta", "--cores", "1"});
  REQUIRE(alpha.says("joined"));
  REQUIRE(beta.says("joined"));
  Process submit(here, with({"submit", "gpt.toml", "--wait", "--output", "plain"},
                            {"name=many", "train.steps=150", "pipeline.stages=2", "log.every=5"}));
  INFO(submit.said());
  REQUIRE(submit.says("step 45 "));
  const auto heads = children_of(head.id());
  REQUIRE(heads.size() == 1);
  kill(heads.front(), SIGKILL);
  CHECK(head.says("was ended by signal 9 (Killed); restarting it"));
  CHECK(head.says("run many continues after step "));
  const auto code = submit.wait();
  INFO(head.said() << alpha.said());
  CHECK(code == 0);
  CHECK(head_of(here) == address);
  CHECK(digest(here, "many") == one);

  // Ended runs are still known.
  const Ended runs = troupe::tests::troupe(here, {"runs", "--head", address});
  CHECK(runs.out.find("150/150") != std::string::npos);
  const Ended top = troupe::tests::troupe(here, {"top", "--head", address});
  CHECK(top.code == 0);
  CHECK(top.out.find("alpha") != std::string::npos);
  CHECK(top.out.find("150/150") != std::string::npos);
  for (Process* node : {&alpha, &beta}) node->send(SIGTERM);
  for (Process* node : {&alpha, &beta}) CHECK(node->wait() == 0);
  head.send(SIGTERM);
  CHECK(head.wait() == 0);
  CHECK(leavings(here) == before);
  CHECK(processes_of_program(here) == 0);
}

TEST_CASE("deaths of a head and a node do not change the step after which a run ends early",
          "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  const std::vector<std::string> settings{"train.steps=100000",        "train.eval_every=20",
                                          "train.stop_after=3",        "train.min_improvement=1000",
                                          "checkpoint.every=15 steps", "checkpoint.keep=1",
                                          "checkpoint.keep_best=1"};
  const auto one = digest_of_one(here, settings);
  Process head(here, head_words({"--supervised"}));
  REQUIRE(head.says("troupe submit"));
  Process alpha(here, {"node", "--name", "alpha", "--cores", "1"});
  Process beta(here, {"node", "--name", "beta", "--cores", "1"});
  REQUIRE(alpha.says("joined"));
  REQUIRE(beta.says("joined"));
  auto all = settings;
  all.insert(all.end(), {"name=early", "pipeline.stages=2", "log.every=1"});
  Process submit(here, with({"submit", "gpt.toml", "--wait", "--output", "plain"}, all));
  REQUIRE(submit.says("step 35 "));
  kill(children_of(head.id()).front(), SIGKILL);
  REQUIRE(submit.says("step 55 "));
  kill(children_of(beta.id()).front(), SIGKILL);
  const auto code = submit.wait();
  INFO(submit.said() << head.said());
  CHECK(code == 0);
  CHECK(
      submit.said().find("done: stopped early: no improvement of the validation loss by 1000 in 3 "
                         "evaluations; the best was ") != std::string::npos);
  CHECK(*events(here, "early", "run.stopped_early").back().find("step")->integer() == 80);
  CHECK(digest(here, "early") == one);

  // The best checkpoint has a name, and a run that is resumed ends at once.
  const Ended best = tests::troupe(here, {"checkpoint", "verify", "early@best"});
  INFO(best.out << best.err);
  CHECK(best.code == 0);
  const Ended listed = tests::troupe(here, {"checkpoint", "ls", "early"});
  CHECK(std::ranges::count(listed.out, '\n') <= 2);
  CHECK(listed.out.find("  best\n") != std::string::npos);
  all.pop_back();
  const Ended again = tests::troupe(
      here, with({"submit", "gpt.toml", "--wait", "--resume", "--output", "plain"}, all));
  INFO(again.out << again.err);
  CHECK(again.code == 0);
  CHECK(digest(here, "early") == one);
  for (Process* node : {&alpha, &beta}) node->send(SIGTERM);
  for (Process* node : {&alpha, &beta}) CHECK(node->wait() == 0);
  head.send(SIGTERM);
  CHECK(head.wait() == 0);
}

TEST_CASE("a head tells its own command of the events that were asked for", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  Process head(here, head_words({"--supervised", "--notify", "tee -a told", "--notify-on",
                                 "done,evaluated"}));
  REQUIRE(head.says("troupe submit"));
  Process alpha(here, {"node", "--name", "alpha", "--cores", "1"});
  REQUIRE(alpha.says("joined"));
  const Ended run = tests::troupe(here, with({"submit", "gpt.toml", "--wait"}, {"name=told"}));
  INFO(run.err);
  CHECK(run.code == 0);
  // No key of a configuration names a command.
  const Ended bad = tests::troupe(here, with({"submit", "gpt.toml"}, {"log.notify=true"}));
  CHECK(bad.code == 3);
  CHECK(bad.err.find("unknown key") != std::string::npos);
  alpha.send(SIGTERM);
  CHECK(alpha.wait() == 0);
  head.send(SIGTERM);
  CHECK(head.wait() == 0);
  std::string told;
  std::istringstream lines(here.read("told"));
  for (std::string line; std::getline(lines, line);) {
    const auto value = parse_json(line);
    REQUIRE(value);
    CHECK(text_in(*value, "run") == "told");
    told += std::string(text_in(*value, "type")) + " ";
  }
  // Evaluations come again if the run has to recover.
  CHECK(told.starts_with("eval eval "));
  CHECK(told.ends_with("eval run.state "));
}

TEST_CASE("a head that is killed repeatedly restarts quickly each time", "[cluster]") {
  const Workplace here;
  Process head(here, head_words({"--supervised"}));
  REQUIRE(head.says("troupe submit"));
  for (int death = 1; death <= 9; ++death) {
    CAPTURE(death);
    const auto heads = children_of(head.id());
    REQUIRE(heads.size() == 1);
    head.see_all();
    const auto killed = std::chrono::steady_clock::now();
    kill(heads.front(), SIGKILL);
    REQUIRE(head.says_once_more("restarting it"));
    REQUIRE(head.says_once_more("troupe submit"));
    CHECK(std::chrono::steady_clock::now() - killed < std::chrono::seconds(4));
  }
  head.send(SIGTERM);
  CHECK(head.wait() == 0);
}

TEST_CASE("a head that is asked to end resumes its runs in its next life", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  const auto one = digest_of_one(here, {"train.steps=400"});
  std::string address;
  {
    Process head(here, head_words());
    REQUIRE(head.says("troupe submit"));
    address = head_of(here);
    Process alpha(here, {"node", "--name", "alpha", "--head", address});
    REQUIRE(alpha.says("joined"));
    Process submit(here, with({"submit", "gpt.toml", "--wait", "--output", "plain"},
                              {"name=many", "train.steps=400", "log.every=5"}));
    REQUIRE(submit.says("step 45 "));
    head.send(SIGTERM);
    CHECK(head.wait() == 0);
    CHECK(submit.wait() == 75);
  }
  Process head(here, head_words());
  REQUIRE(head.says("run many continues after step"));
  REQUIRE(head.says("troupe submit"));
  CHECK(head_of(here) == address);
  // The run waits for a second node, so the reader is connected before it continues.
  Process events(here, {"events", "many", "--head", address, "--output", "plain"});
  Process beta(here, {"node", "--name", "beta", "--head", address});
  INFO(head.said() << beta.said());
  REQUIRE(events.says("run many: done"));
  CHECK(digest(here, "many") == one);
  // The run was saved before the head ended, so no step was repeated.
  const auto times = times_done(here, "many");
  CHECK(times.size() == 400);
  for (const auto& [step, count] : times) CHECK(count == 1);
}

TEST_CASE("a head whose run waits for nodes ends when asked to", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  Process head(here, head_words());
  REQUIRE(head.says("troupe submit"));
  Process alpha(here, {"node", "--name", "alpha", "--cores", "1"});
  REQUIRE(alpha.says("joined"));
  Process submit(here, {"submit", "gpt.toml", "--wait", "--output", "plain", "--set", "name=alone",
                        "--set", "train.steps=100000", "--set", "log.every=1"});
  REQUIRE(submit.says("step 10 "));
  alpha.send(SIGKILL);
  CHECK(submit.says("recovering from the newest state in memory"));
  head.send(SIGTERM);
  INFO(head.said());
  CHECK(head.wait() == 0);
  INFO(submit.said());
  CHECK(submit.wait() == 75);
}

TEST_CASE("the machine of a run that waits for its first nodes decides when it begins",
          "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  Process head(here, head_words());
  REQUIRE(head.says("troupe submit"));
  Process alpha(here, {"node", "--name", "alpha", "--cores", "1"});
  REQUIRE(alpha.says("joined"));
  const auto submit = [](const std::string& name, const std::string& nodes) {
    return with({"submit", "gpt.toml", "--wait", "--output", "plain"},
                {"name=" + name, "elastic.nodes=" + nodes, "train.steps=3"});
  };
  Process pair(here, submit("pair", "2:2"));
  REQUIRE(pair.says("run pair"));
  Process many(here, submit("many", "3:3"));
  REQUIRE(many.says("run many"));
  // A run that only waits stops at once.
  CHECK(troupe::tests::troupe(here, {"stop", "many"}).code == 0);
  CHECK(many.says("stopped"));
  INFO(many.said());
  CHECK(many.wait() == 75);

  Process beta(here, {"node", "--name", "beta", "--cores", "1"});
  CHECK(pair.wait() == 0);
  INFO(head.said() << pair.said());
  const auto decisions = events(here, "pair", "decision");
  std::vector<std::string> rows;
  for (const auto& decision : decisions)
    for (const auto& row : *decision.find("rows")->list()) rows.push_back(*row.text());
  REQUIRE(rows.size() > 3);
  CHECK(rows[0] == "boot_fresh");
  CHECK(rows[1] == "gather_waits");
  CHECK(rows[2] == "gather_enough");
  const auto chosen = events(here, "pair", "run.chosen");
  REQUIRE(chosen.size() == 1);
  const auto time_of = [](const Value& event) { return event.find("time")->number(); };
  CHECK(time_of(decisions[2]) <= time_of(chosen[0]));
}

namespace {

/// A client that always has questions and orders waiting at a head: each answer leads to the next
/// question.
class CeaselessAsker {
 public:
  explicit CeaselessAsker(const std::string& head) {
    transport::ClientEvents events;
    events.connected = [this] {
      (void)socket_->send(message_of("hello"));
      for (int i = 0; i < most_waiting; ++i) ask();
    };
    events.message = [this](const transport::Message& message) {
      if (message.re == 0) return;
      if (message.type == "answer") answers_.add(message.re);
      ask();
    };
    auto dialled = own_.network.dial(dial_options(head), std::move(events), *own_.loop);
    REQUIRE(dialled);
    socket_ = std::move(*dialled);
    socket_->start();
  }

  /// Waits until this many answers have come since the start.
  bool hears(std::size_t answers) { return answers_.wait(answers); }

 private:
  static constexpr int most_waiting = 32;

  /// Called only in callbacks of the socket.
  void ask() {
    static constexpr const char* types[] = {"status", "run.list", "run.get", "run.submit"};
    auto question = message_of(types[asked_ % std::size(types)]);
    question.id = ++asked_;
    if (question.type == "run.get") question.body.set("run", "many");
    // The first order starts a run, which waits for nodes. The head refuses the later orders.
    if (question.type == "run.submit")
      question.body = *parse_json(R"({
        "name": "many", "seed": 1,
        "model": {"kind": "gpt2", "layers": 1, "width": 16, "heads": 1, "context": 64, "vocab": 32},
        "data": {"train": "made:markov?states=32"}, "batch": {"global": 4}, "train": {"steps": 1},
        "optimizer": {"kind": "sgd", "lr": 0.1}})");
    (void)socket_->send(question);
  }

  std::uint64_t asked_ = 0;
  Told<std::uint64_t> answers_;
  OwnNetwork own_;
  std::unique_ptr<transport::ControlClient> socket_;  // Destroyed first.
};

}  // namespace

TEST_CASE("a head ends with code 0 while clients ask without pause", "[cluster]") {
  for (std::size_t end = 0; end < 20; ++end) {
    CAPTURE(end);
    const Workplace here;
    Process head(here, head_words());
    REQUIRE(head.says("troupe submit"));
    std::vector<std::unique_ptr<CeaselessAsker>> askers;
    for (int i = 0; i < 4; ++i) askers.push_back(std::make_unique<CeaselessAsker>(head_of(here)));
    // Each end comes at another moment of the questions.
    for (const auto& asker : askers) REQUIRE(asker->hears(20 + 7 * end));
    head.send(SIGTERM);
    const auto code = head.wait();
    INFO(head.said());
    CHECK(code == 0);
  }
}

TEST_CASE("a head that restarts with an old term is refused by nodes and ends", "[cluster]") {
  const Workplace here;
  std::string address;
  {
    Process head(here, head_words());
    REQUIRE(head.says("term 1"));
    address = head_of(here);
  }
  Process alpha(here, {"node", "--name", "alpha", "--head", address});
  {
    Process head(here, head_words());
    REQUIRE(head.says("term 2"));
    REQUIRE(alpha.says("joined"));
  }
  Process head(here, {"head", "--listen", address, "--events", "127.0.0.1:0", "--state", "other"});
  CHECK(head.wait() == 76);
  INFO(head.said());
  CHECK(head.said().find("a node has proved that it knows a newer head (term 2)") !=
        std::string::npos);
}

TEST_CASE("two heads cannot use one folder", "[cluster]") {
  const Workplace here;
  Process first(here, head_words());
  REQUIRE(first.says("troupe submit"));
  const Ended second = troupe::tests::troupe(here, head_words());
  CHECK(second.code == 1);
  CHECK(second.err.find("another head lives there") != std::string::npos);
}

TEST_CASE("a head does not start with a damaged journal, and names the damage", "[cluster]") {
  const Workplace here;
  {
    Process head(here, head_words());
    REQUIRE(head.says("troupe submit"));
  }
  auto journal = here.read(".troupe/journal");
  REQUIRE(journal.find("\"term\":1") != std::string::npos);
  journal[journal.find("\"term\":1") + 7] = '7';
  here.write(".troupe/journal", journal);
  const Ended ended = troupe::tests::troupe(here, head_words());
  CHECK(ended.code == 1);
  CHECK(ended.err.find(".troupe/journal: line 1 does not follow") != std::string::npos);
  CHECK(here.read(".troupe/journal") == journal);
}

TEST_CASE("a head's decisions for a run are recorded, and the next head knows them", "[cluster]") {
  const Workplace here;
  const auto before = leavings(here);
  here.write("gpt.toml", gpt);
  const std::string decisions = "runs/many/decisions";
  const auto count = [&](const std::string& kind) {
    const auto text = here.read(decisions);
    int found = 0;
    for (auto at = text.find("\"kind\":\"" + kind); at != std::string::npos;
         at = text.find("\"kind\":\"" + kind, at + 1))
      ++found;
    return found;
  };
  {
    Cluster cluster(here, {"alpha", "beta"});
    Process submit(here,
                   with({"submit", "gpt.toml", "--wait", "--output", "plain"},
                        {"name=many", "train.steps=150", "pipeline.stages=2", "log.every=5"}));
    INFO(submit.said());
    REQUIRE(submit.says("step 45 "));
    CHECK(count("begun") == 1);
    CHECK(count("dead") == 0);
    kill(cluster.node_process(0), SIGKILL);
    CHECK(submit.wait() == 0);
    // There is one for each plan, recorded before any node hears of it.
    CHECK(count("planned") >= 2);
    CHECK(count("begun") >= 2);
    CHECK(count("dead") == 1);

    // No decisions are made for a run that has ended.
    const auto ended = here.read(decisions);
    const auto alpha = cluster.node_process(0);
    cluster.head.see_all();
    kill(alpha, SIGKILL);
    CHECK(cluster.head.says_once_more("node alpha is lost"));
    CHECK(cluster.head.says_once_more("node alpha has joined"));
    CHECK(here.read(decisions) == ended);

    auto text = here.read(decisions);
    text[text.find("alpha")] = 'A';
    here.write(decisions, text);
    const Ended again = troupe::tests::troupe(
        here, with({"submit", "gpt.toml", "--resume", "--head", head_of(here)},
                   {"name=many", "train.steps=160", "pipeline.stages=2"}));
    CHECK(again.code != 0);
    CHECK(again.err.find(decisions + ": line ") != std::string::npos);
    CHECK(again.err.find("move it away: then the run goes on as if its nodes were new") !=
          std::string::npos);
    cluster.end();
  }
  CHECK(leavings(here) == before);
  CHECK(processes_of_program(here) == 0);
}

TEST_CASE("a head answers other requests while it opens the data of a new run", "[cluster]") {
  const Workplace here;
  std::string line = R"({"text": ")" + std::string(1000, 'x') + "\"}\n";
  std::string lines;
  for (int i = 0; i < 30'000; ++i) lines += line;
  here.write("big.jsonl", lines);
  Cluster cluster(here, {});
  Liar somebody(head_of(here));
  auto submit = message_of("run.submit");
  submit.id = 1;
  submit.body = *parse_json(R"({
    "name": "big", "seed": 1,
    "model": {"kind": "gpt2", "layers": 1, "width": 16, "heads": 1, "context": 64, "vocab": 256},
    "data": {"train": "big.jsonl"}, "batch": {"global": 4}, "train": {"steps": 1},
    "optimizer": {"kind": "sgd", "lr": 0.1}})");
  auto list = message_of("run.list");
  list.id = 2;
  somebody.say_unnumbered(submit);
  somebody.say_unnumbered(list);
  CHECK(somebody.answered(2) == std::vector<std::uint64_t>{2, 1});
  // The run starts, and only once although the order is repeated.
  somebody.say_unnumbered(submit);
  Process follow(here, {"attach", "big", "--head", head_of(here), "--output", "plain"});
  cluster.start_node("alpha");
  CHECK(follow.wait() == 0);
  cluster.end();
}

TEST_CASE("nodes whose data file differs from the head's are refused, and the error names it",
          "[cluster]") {
  const Workplace here;
  const Workplace elsewhere;
  here.write("gpt.toml", gpt);
  std::string text;
  for (int i = 0; i < 3'000; ++i) text += "the cat sat on the mat, number " + std::to_string(i % 7);
  here.write("book.txt", text);
  text[20'000] ^= 1;
  elsewhere.write("book.txt", text);
  Process head(here, head_words());
  REQUIRE(head.says("troupe submit"));
  const auto address = head_of(here);
  Process alpha(here, {"node", "--name", "alpha", "--cores", "1", "--head", address});
  Process beta(elsewhere, {"node", "--name", "beta", "--cores", "1", "--head", address});
  REQUIRE(alpha.says("joined"));
  REQUIRE(beta.says("joined"));
  Process submit(here,
                 with({"submit", "gpt.toml", "--wait", "--output", "plain", "--head", address},
                      {"name=many", "train.steps=20", "data.train=book.txt", "model.vocab=256",
                       "pipeline.stages=2", "elastic.nodes=2:2"}));
  const auto code = submit.wait();
  INFO(submit.said() << head.said());
  CHECK(code == 1);
  CHECK(submit.said().find("book.txt: this data file differs from the head's") !=
        std::string::npos);
  CHECK(times_done(here, "many").empty());
}

TEST_CASE("readers get all events despite torn and very long lines", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  Cluster cluster(here, {"alpha"});
  const auto address = head_of(here);
  const std::string name = "torn";
  const Ended done = troupe::tests::troupe(
      here,
      with({"submit", "gpt.toml", "--wait", "--head", address}, {"name=torn", "train.steps=5"}));
  INFO(done.err);
  REQUIRE(done.code == 0);
  const auto path = "runs/" + name + "/events.jsonl";
  const std::string kept = here.read(path);
  REQUIRE_FALSE(kept.empty());
  // Writes what a full disk leaves, then an event longer than a page, and one more event.
  here.write(path, kept + "{\"type\":\"st\n{\"type\":\"warn\",\"run\":\"" + name +
                       "\",\"text\":\"" + std::string(200'000, 'x') +
                       "\"}\n{\"type\":\"warn\",\"run\":\"" + name + "\",\"text\":\"the last\"}\n");
  const Ended logs =
      troupe::tests::troupe(here, {"logs", name, "--head", address, "--output", "plain"});
  CHECK(logs.code == 0);
  CHECK(logs.out.find("skipped an incomplete line of events: 11 bytes") != std::string::npos);
  CHECK(logs.out.find(std::string(200'000, 'x')) != std::string::npos);
  CHECK(logs.out.find("the last") != std::string::npos);
}

TEST_CASE("a head that skips a damaged checkpoint reports that", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  Cluster cluster(here, {"alpha"});
  const auto address = head_of(here);
  const std::vector<std::string> settings = {"name=many", "checkpoint.every=5 steps"};
  auto submit = [&](const std::string& steps, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"submit", "gpt.toml", "--wait", "--head",
                                      address,  "--output", "plain"};
    words.insert(words.end(), more.begin(), more.end());
    auto all = settings;
    all.push_back("train.steps=" + steps);
    return troupe::tests::troupe(here, with(words, all));
  };
  REQUIRE(submit("10", {}).code == 0);
  const std::string weights = "runs/many/checkpoints/step-000000000010/weights.safetensors";
  std::string bytes = here.read(weights);
  REQUIRE(bytes.size() > 1'000);
  bytes[bytes.size() - 5] ^= 1;
  here.write(weights, bytes);
  const Ended resumed = submit("15", {"--resume"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(resumed.out.find("step-000000000010 is damaged and was skipped") != std::string::npos);
  const Ended runs = troupe::tests::troupe(here, {"runs", "--head", address, "--output", "json"});
  CHECK(runs.out.find("is damaged and was skipped") != std::string::npos);
}

namespace {

/// Counts the entries of a folder of a process in /proc.
std::ptrdiff_t entries_of(pid_t process, const std::string& folder) {
  const std::filesystem::directory_iterator entries("/proc/" + std::to_string(process) + "/" +
                                                    folder);
  return std::distance(begin(entries), end(entries));
}

const std::string tiny = R"(
[model]
kind    = "gpt2"
vocab   = 8
context = 4
width   = 8
heads   = 1
layers  = 1
[data]
train = "made:markov?states=8"
[batch]
global = 2
[optimizer]
kind = "sgd"
lr   = 0.1
[train]
steps = 2
)";

}  // namespace

TEST_CASE("a head keeps only the report of a run that has ended", "[cluster]") {
  constexpr int runs = 30;
  const Workplace here;
  here.write("tiny.toml", tiny);
  Cluster cluster(here, {"alpha"});
  const auto head = cluster.head.id();
  const auto play = [&](int number) {
    const Ended ended =
        tests::troupe(here, {"submit", "tiny.toml", "--wait", "-q", "--head", head_of(here),
                             "--set", "name=run-" + std::to_string(number)});
    INFO(ended.err);
    REQUIRE(ended.code == 0);
  };
  play(0);
  play(1);
  // The threads of an ended run end soon after its last event.
  const auto settled = [&](std::ptrdiff_t threads) {
    for (int i = 0; i < 1000 && entries_of(head, "task") > threads; ++i)
      cluster.head.listen(std::chrono::milliseconds(10));
    return entries_of(head, "task");
  };
  const auto threads = settled(0), files = entries_of(head, "fd");
  for (int number = 2; number < runs; ++number) play(number);
  CHECK(settled(threads) <= threads);
  // The last client may still be connected.
  CHECK(entries_of(head, "fd") <= files + 4);
  const Ended listed = tests::troupe(here, {"runs", "--head", head_of(here)});
  CHECK(listed.out.find("run-0 ") != std::string::npos);
  CHECK(listed.out.find("run-29 ") != std::string::npos);
  // The run's name is free, its events are readable, and it takes no orders.
  play(0);
  CHECK(tests::troupe(here, {"logs", "run-3", "--head", head_of(here)}).code == 0);
  const Ended late =
      tests::troupe(here, {"set", "run-3", "optimizer.lr=0.2", "--head", head_of(here)});
  CHECK(late.err.find("the run 'run-3' is not active: it is done") != std::string::npos);
  cluster.end();
}

TEST_CASE("a head with 10,000 ended runs answers at once", "[cluster]") {
  const Workplace here;
  {
    const auto files = storage::disk_files();
    auto journal = storage::RecordWriter::open(*files, (here.path() / ".troupe/journal").string());
    REQUIRE(journal);
    Value term;
    term.set("type", "term");
    term.set("term", std::int64_t{1});
    REQUIRE(journal->append(term));
    const auto now =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    for (int i = 0; i < 10'000; ++i) {
      Value ended;
      ended.set("type", "ended");
      ended.set("run", "run-" + std::to_string(i));
      ended.set("submission", std::int64_t{i});
      ended.set("state", "done");
      ended.set("step", std::int64_t{1000});
      ended.set("steps", std::int64_t{1000});
      ended.set("time", now - 10'000 + i);
      REQUIRE(journal->append(ended));
    }
    REQUIRE(journal->sync());
  }
  Process head(here, head_words({}));
  REQUIRE(head.says("troupe submit"));
  // Takes the best of several, since the machine may be busy.
  auto best = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 20; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const Ended runs = tests::troupe(here, {"runs", "--head", head_of(here)});
    best = std::min(best, std::chrono::steady_clock::now() - begin);
    REQUIRE(runs.code == 0);
    CHECK(runs.out.find("run-9999 ") != std::string::npos);
    CHECK(runs.out.find("run-8999 ") == std::string::npos);
  }
  INFO(std::chrono::duration<double>(best).count() << " s");
  if (!is_sanitized) CHECK(best < std::chrono::milliseconds(100));
  CHECK(entries_of(head.id(), "task") < 20);
  CHECK(entries_of(head.id(), "fd") < 60);
  if (!is_sanitized) CHECK(resident_bytes(head.id()) < 50L << 20);
  head.send(SIGTERM);
  CHECK(head.wait() == 0);
}
