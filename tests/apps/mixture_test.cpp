// Runs whose training data is a mixture.

#include <string>

#include "apps/program.h"
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
