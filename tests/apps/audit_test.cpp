#include <algorithm>
#include <random>
#include <sstream>

#include "apps/program.h"
#include "apps/run/killed_run.h"
#include "catch.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

const std::string small_run = R"(
name = "small"
seed = 3
[model]
kind = "mlp"
dims = [8, 16, 4]
[data]
train = "made:gaussians?dims=8&classes=4&samples=100"
[batch]
global = 8
micro  = 4
[optimizer]
kind = "sgd"
lr   = 0.05
[checkpoint]
every = "5 steps"
[train]
steps = 60
)";

Value audited(const Workplace& here) {
  const Ended ended = troupe::tests::troupe(here, {"audit", "small", "--output", "json"});
  INFO(ended.err);
  const auto value = parse_json(ended.out);
  REQUIRE(value);
  CHECK(ended.code == (*value->find("good")->boolean() ? 0 : 1));
  return *value;
}

std::int64_t count(const Value& audit, const std::string& key) {
  return *audit.find(key)->integer();
}

std::string flaw_of(const Value& audit) {
  const Value* flaw = audit.find("flaw");
  return flaw ? *flaw->text() : "";
}

}  // namespace

TEST_CASE("runs that were killed at any moment used every sample exactly once", "[apps]") {
  std::mt19937 random(5);
  std::int64_t attempts = 0;
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{},
        {"--set", "pipeline.stages=2"},
        {"--set", "pipeline.schedule=pipedream", "--set", "pipeline.stages=2"}}) {
    for (int round = 0; round < 3; ++round) {
      const Workplace here;
      here.write("run.toml", small_run);
      train_through_kills(here, "small", more, 4, 20'000, random);
      const Value audit = audited(here);
      INFO(to_json(audit));
      CHECK(flaw_of(audit) == "");
      CHECK(count(audit, "steps") == 60);
      CHECK(count(audit, "samples") == 480);
      CHECK(count(audit, "passes") == 4);
      attempts += count(audit, "attempts");
    }
  }
  CHECK(attempts > 9);  // Some runs were killed between steps.
}

TEST_CASE("an audit with the data proves which bytes were read", "[apps]") {
  const Workplace here;
  // The file is larger than the part whose digest is its identity, so only the steps can detect a
  // change between the digest's blocks.
  std::string text(std::size_t{5} << 20, 'a');
  for (std::size_t at = 0; at < text.size(); ++at) text[at] = static_cast<char>('a' + at % 23);
  here.write("book.txt", text);
  here.write("run.toml", R"(
name = "small"
seed = 3
[model]
kind = "gpt2"
layers = 1
width = 16
heads = 1
context = 64
vocab = "auto"
[data]
train = "book.txt"
order = "sequential"
[batch]
global = 8
micro  = 4
[optimizer]
kind = "sgd"
lr   = 0.05
[train]
steps = 40
)");
  const Ended trained = troupe::tests::troupe(here, {"train", "run.toml", "-q"});
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  const Ended good = troupe::tests::troupe(here, {"audit", "small", "--data"});
  CHECK(good.code == 0);
  CHECK(good.out.find("read the data again: the bytes of 40 steps match the data\n") !=
        std::string::npos);

  // Sample 250 belongs to step 32.
  text[250 * 64 + 384 + 1] = 'z';
  here.write("book.txt", text);
  CHECK(troupe::tests::troupe(here, {"audit", "small"}).code == 0);
  const Ended bad = troupe::tests::troupe(here, {"audit", "small", "--data"});
  CHECK(bad.code == 1);
  CHECK(
      bad.out.find("FAIL: step 33 read other bytes than the data has now: sample 256 of pass 0") !=
      std::string::npos);
  std::filesystem::remove(here.path() / "book.txt");
  CHECK(troupe::tests::troupe(here, {"audit", "small", "--data"}).code == 3);
}

TEST_CASE("an audit names the flaw of a ledger", "[apps]") {
  const Workplace here;
  here.write("run.toml", small_run);
  REQUIRE(troupe::tests::troupe(here, {"train", "run.toml", "-q"}).code == 0);
  const Ended good = troupe::tests::troupe(here, {"audit", "small"});
  CHECK(good.code == 0);
  CHECK(good.out ==
        "runs/small: 60 steps of 480 samples are committed: 4 complete epochs\nattempts: 1; "
        "repeated steps: 0\neach sample of each epoch is in exactly one committed step\n");

  const std::string whole = here.read("runs/small/ledger");
  std::vector<std::string> lines;
  std::istringstream in(whole);
  for (std::string line; std::getline(in, line);) lines.push_back(line + "\n");
  const auto is_step = [](const std::string& line) {
    return line.find("\"step\":") != std::string::npos;
  };
  REQUIRE(std::ranges::count_if(lines, is_step) == 60);
  // Records of saves appear among the steps, wherever the disk completed them.
  std::size_t left_out = 20;
  while (!is_step(lines.at(left_out))) ++left_out;

  std::string without;
  for (std::size_t at = 0; at < lines.size(); ++at)
    if (at != left_out) without += lines[at];
  here.write("runs/small/ledger", without);
  const Ended bad = troupe::tests::troupe(here, {"audit", "small"});
  CHECK(bad.code == 1);
  CHECK(bad.out.find("FAIL: line " + std::to_string(left_out + 1) +
                     " does not follow from those before it\n") != std::string::npos);

  // A torn end is no flaw of the ledger, but the checkpoint contains more steps.
  const auto last = whole.rfind("\"step\":");
  here.write("runs/small/ledger", whole.substr(0, last));
  const Value torn = audited(here);
  CHECK(flaw_of(torn).find("480 samples in 60 steps, but 59 steps of 472 samples are committed") !=
        std::string::npos);

  // A run must not continue with a flawed ledger.
  here.write("runs/small/ledger", without);
  const Ended resumed = troupe::tests::troupe(
      here, {"train", "run.toml", "-q", "--resume", "--set", "train.steps=65"});
  CHECK(resumed.code == 1);

  CHECK(troupe::tests::troupe(here, {"audit", "other"}).code == 3);
}
