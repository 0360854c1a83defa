// Runs whose training data is a mixture.

#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>

#include "apps/program.h"
#include "apps/run/killed_run.h"
#include "catch.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

const std::string mixed_run = R"(
name = "mixed"
seed = 3
[model]
kind = "gpt2"
layers = 2
width = 16
heads = 1
context = 8
vocab = "auto"
[data]
mix = "a.txt 3, b.txt 1; from 7: b.txt 2, a.txt 1"
[batch]
global = 8
micro  = 4
[optimizer]
kind = "adamw"
lr   = 0.01
[checkpoint]
every = "4 steps"
[train]
steps = 12
)";

void write_sources(const Workplace& here) {
  std::string a, b;
  for (int i = 0; i < 40; ++i) {
    a += "to be or not " + std::to_string(i);
    b += "\nthat is the question " + std::to_string(i * i);
  }
  here.write("a.txt", a);
  here.write("b.txt", b);
}

void train_mixed(const Workplace& here, std::vector<std::string> words) {
  words.insert(words.begin(), {"train", "run.toml", "-q"});
  const Ended ended = troupe::tests::troupe(here, words);
  INFO(ended.err);
  REQUIRE(ended.code == 0);
}

}  // namespace

TEST_CASE("a mixture gives equal weights with other stages and after a resumption", "[apps]") {
  const Workplace here;
  write_sources(here);
  here.write("run.toml", mixed_run);
  const auto weights = [&](const std::string& run) {
    return here.read("runs/" + run + "/checkpoints/step-000000000012/weights.safetensors");
  };
  train_mixed(here, {});
  train_mixed(here, {"--set", "name=stages", "--set", "pipeline.stages=2"});
  CHECK(weights("stages") == weights("mixed"));
  // The first part ends with step 4; the second one crosses the change at step 7.
  train_mixed(here, {"--set", "name=parts", "--set", "train.steps=4"});
  train_mixed(here, {"--resume", "--set", "name=parts"});
  CHECK(weights("parts") == weights("mixed"));
  train_mixed(here, {"--set", "name=other", "--set", "data.mix=a.txt 3, b.txt 1"});
  CHECK(weights("other") != weights("mixed"));

  const Ended audited = troupe::tests::troupe(here, {"audit", "parts", "--data"});
  INFO(audited.out << audited.err);
  CHECK(audited.code == 0);
  CHECK(mentions(audited.out, "the bytes of 12 steps match the data"));
}

namespace {

/// A run whose mixture changes behind a step, and whose processes are killed.
struct KilledMixture {
  int steps = 0;
  int change = 0;
  int most_kills = 0;
  int least_kills = 0;
  long most_microseconds = 0;  // Between the growth of the ledger and a kill.
};

void check_mixture(const KilledMixture& run) {
  const Workplace here;
  write_sources(here);
  const std::string steps = std::to_string(run.steps), change = std::to_string(run.change);
  std::string text = mixed_run;
  text.replace(text.find("steps = 12"), 10, "steps = " + steps);
  text.replace(text.find("from 7:"), 7, "from " + change + ":");
  here.write("run.toml", text);
  const std::string weights =
      "/checkpoints/step-" + std::string(12 - steps.size(), '0') + steps + "/weights.safetensors";
  train_mixed(here, {"--set", "name=calm"});
  std::mt19937 random(7);
  const int kills =
      train_through_kills(here, "mixed", {}, run.most_kills, run.most_microseconds, random);
  CHECK(kills >= run.least_kills);
  CHECK(here.read("runs/mixed" + weights) == here.read("runs/calm" + weights));

  // The counts of each step, from the last attempt that played it.
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> counts;
  std::istringstream lines(here.read("runs/mixed/ledger"));
  for (std::string line; std::getline(lines, line);) {
    const auto record = parse_json(line.substr(17));
    REQUIRE(record);
    const Value* of_sources = record->find("of_sources");
    if (!of_sources) continue;
    const auto& list = *of_sources->list();
    REQUIRE(list.size() == 2);
    counts[*record->find("step")->integer()] = {*list[0].integer(), *list[1].integer()};
  }
  REQUIRE(std::ssize(counts) == run.steps);
  std::int64_t a = 0, b = 0;
  for (const auto& [step, read] : counts) {
    CHECK(read.first + read.second == 8);
    if (step == run.change + 1) a = b = 0;
    a += read.first;
    b += read.second;
    // A step of 8 has two blocks of 3 + 1; later, three steps have eight blocks of 1 + 2.
    if (step <= run.change) CHECK(read == std::pair<std::int64_t, std::int64_t>{6, 2});
    if (step > run.change && (step - run.change) % 3 == 0) CHECK(2 * a == b);
  }
  const Ended audited = troupe::tests::troupe(here, {"audit", "mixed", "--output", "json"});
  INFO(audited.out << audited.err);
  REQUIRE(audited.code == 0);
  const auto found = parse_json(audited.out);
  REQUIRE(found);
  const auto& phases = *found->find("phases")->list();
  REQUIRE(phases.size() == 2);
  const std::string of_a = std::to_string(6 * run.change), of_b = std::to_string(2 * run.change);
  CHECK(to_json(phases[0]) ==
        R"({"first":1,"last":)" + change + R"(,"samples":[)" + of_a + "," + of_b + "]}");
  CHECK(*phases[1].find("last")->integer() == run.steps);
  const Ended printed = troupe::tests::troupe(here, {"audit", "mixed"});
  CHECK(mentions(printed.out,
                 "steps 1 to " + change + ": " + of_a + " of a.txt, " + of_b + " of b.txt"));
}

}  // namespace

TEST_CASE("a mixture that was killed has exact counts in every block, and equal weights",
          "[apps]") {
  check_mixture(
      {.steps = 60, .change = 31, .most_kills = 12, .least_kills = 3, .most_microseconds = 8'000});
}

TEST_CASE("a mixture that changes at step 2,000 has exact counts after 50 kills", "[.all]") {
  check_mixture({.steps = 4000,
                 .change = 2000,
                 .most_kills = 50,
                 .least_kills = 50,
                 .most_microseconds = 60'000});
}

TEST_CASE("weights that are set during a run give the weights of a planned change",
          "[apps][cluster]") {
  const Workplace here;
  write_sources(here);
  std::string text = mixed_run;
  text.replace(text.find("steps = 12"), 10, "steps = 200");
  text.replace(text.find("; from 7: b.txt 2, a.txt 1"), 26, "");
  const auto run = here.write("run.toml", text);
  const auto submit = [&](const std::string& name, const std::string& more = "") {
    return "[[act]]\nsubmit = \"" + run + "\"\nset = [\"name=" + name + "\"" + more + "]\n";
  };
  const auto ends = [](const std::string& name, const std::string& state) {
    return "expect = { type = \"run.state\", run = \"" + name + "\", state = \"" + state +
           "\" }\nwithin = \"60s\"\n";
  };
  const std::string refused = R"([[act]]
command = ["set", "stormy", "data.mix=a.txt 1, c.txt 1"]
exit_code = 3
)";
  const Ended played = troupe::tests::troupe(
      here, {"play", here.write("scenario.toml",
                                "[cluster]\nnodes = 2\n" +
                                    submit("planned",
                                           ", \"data.mix=a.txt 3, b.txt 1; from 50: b.txt 2, "
                                           "a.txt 1; from 120: a.txt 1\"") +
                                    ends("planned", "done") + submit("stormy") + R"([[act]]
when = { type = "step", run = "stormy", step = ">= 25" }
send = { type = "run.set", run = "stormy", set = "data.mix=b.txt 2, a.txt 1", from = 50 }
expect = { type = "run.changed", run = "stormy", step = 50 }
)" + refused + R"([[act]]
send = { type = "run.stop", run = "stormy", mode = "now" }
)" + ends("stormy", "stopped") + submit("stormy") +
                                    R"(resume = true
[[act]]
when = { type = "step", run = "stormy", step = ">= 62" }
send = { type = "run.set", run = "stormy", set = "data.mix=a.txt 1", from = 120 }
expect = { type = "run.changed", run = "stormy", step = 120 }
[[act]]
send = { type = "chaos", what = "kill", target = "node-1" }
)" + ends("stormy", "done") + "[[act]]\nsame_weights = [\"stormy\", \"planned\"]\n")});
  INFO(played.err);
  CHECK(played.code == 0);
  CHECK(mentions(played.err, "found \"c.txt\", wanted a source of the run"));
  const Ended audited = troupe::tests::troupe(here, {"audit", "stormy", "--data"});
  INFO(audited.out << audited.err);
  CHECK(audited.code == 0);
  CHECK(mentions(audited.out, "steps 51 to 120: "));
  CHECK(mentions(audited.out, "steps 121 to 200: 640 of "));
}

TEST_CASE("a resumed run says that weights set during it hold, and not edited ones", "[apps]") {
  const Workplace here;
  write_sources(here);
  here.write("run.toml", mixed_run);
  train_mixed(here, {"--set", "train.steps=8"});
  // As `troupe set` leaves it.
  here.write("runs/mixed/changes.toml",
             "data.mix = \"a.txt 3, b.txt 1; from 7: b.txt 2, a.txt 1; from 10: a.txt 1\"\n");
  const auto warned = [&](const std::string& mix) {
    const Ended ended =
        troupe::tests::troupe(here, {"train", "run.toml", "--resume", "--output", "json", "--set",
                                     "train.steps=9", "--set", "data.mix=" + mix});
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    std::string texts;
    for (const auto& event : ended.events("warn")) texts += *event.find("text")->text() + "|";
    return texts;
  };
  const auto edited = warned("a.txt 3, b.txt 1; from 7: b.txt 2, a.txt 1; from 9: b.txt 1");
  CHECK(mentions(edited, "from 9: b.txt 1\" of the configuration does not count: \"a.txt 3"));
  CHECK(mentions(edited, "(runs/mixed/changes.toml), and `troupe set` changes it further"));
  // Another spelling of the same mixture is no other one.
  CHECK(!mentions(warned("a.txt 3,b.txt 1;from 7: b.txt 2,a.txt 1;from 10: a.txt 1"),
                  "does not count"));
}

TEST_CASE("a mixture that cannot be opened is refused with its key", "[apps]") {
  const Workplace here;
  write_sources(here);
  here.write("run.toml", mixed_run);
  const auto error_of_mix = [&](const std::string& mix) {
    const Ended ended =
        troupe::tests::troupe(here, {"train", "run.toml", "--set", "data.mix=" + mix});
    CHECK(ended.code != 0);
    return ended.err;
  };
  CHECK(mentions(error_of_mix("a.txt 1, none.txt 1"), "data.mix: none.txt"));
  CHECK(mentions(error_of_mix("a.txt 1, b.txt"), "data.mix: found \"b.txt\", wanted a source"));
  const Ended both =
      troupe::tests::troupe(here, {"train", "run.toml", "--set", "data.train=a.txt"});
  CHECK(both.code != 0);
  CHECK(mentions(both.err, "data.mix is in place of data.train"));
}
