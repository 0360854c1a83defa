// Runs in fp16 through the program: skipped steps are reported, and every plan and every resumption
// gives the same bits.

#include <signal.h>
#include <time.h>

#include "apps/program.h"
#include "catch.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

const std::string run = R"(
name = "halves"
seed = 3
[model]
kind    = "gpt2"
vocab   = 32
context = 16
width   = 32
heads   = 2
layers  = 2
[data]
train = "made:markov?states=32"
[batch]
global = 8
micro  = 2
[precision]
compute    = "fp16"
loss_scale = { initial_power = 24, growth_interval = 8 }
[checkpoint]
every = "5 steps"
[train]
steps  = 40
)";

Ended train(const Workplace& here, const std::vector<std::string>& settings,
            bool is_resumed = false) {
  std::vector<std::string> arguments{"train", "run.toml", "--output", "json"};
  for (const auto& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
  if (is_resumed) arguments.push_back("--resume");
  return troupe::tests::troupe(here, arguments);
}

/// Returns the digest of the final weights from the last save event.
std::string digest_of(const Ended& ended) {
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  const auto saved = ended.events("checkpoint.saved");
  REQUIRE(!saved.empty());
  return *saved.back().find("weights")->text();
}

std::int64_t count_skipped(const Ended& ended) {
  std::int64_t skipped = 0;
  for (const auto& step : ended.events("step")) {
    const bool is_skipped = *step.find("skipped")->boolean();
    CHECK(is_skipped == !step.find("grad_norm"));
    CHECK(step.find("loss_scale")->number() >= 1);
    skipped += is_skipped ? 1 : 0;
  }
  return skipped;
}

}  // namespace

TEST_CASE("fp16 gives the same bits with every plan and reports skipped steps", "[apps]") {
  const Workplace here;
  here.write("run.toml", run);
  const Ended one = train(here, {});
  const std::string wanted = digest_of(one);
  const auto skipped = count_skipped(one);
  CHECK(skipped > 0);
  CHECK(skipped < 20);
  CHECK(*one.events("run.state").back().find("skipped_steps")->integer() == skipped);
  CHECK(one.events("step").front().find("loss_scale")->number() == 0x1p24);
  CHECK(digest_of(train(here, {"pipeline.stages=2", "pipeline.schedule=gpipe"})) == wanted);
  CHECK(digest_of(train(here, {"pipeline.stages=2", "pipeline.schedule=1f1b",
                               "pipeline.replicas=2"})) == wanted);
  CHECK(digest_of(train(here, {"pipeline.recompute=true", "train.threads=2"})) == wanted);
  CHECK(digest_of(train(here, {"precision.compute=fp32"})) != wanted);
  const Ended verified = troupe::tests::troupe(
      here, {"verify", "run.toml", "--steps", "12", "--set", "pipeline.stages=2"});
  INFO(verified.err);
  CHECK(verified.code == 0);
}

TEST_CASE("a killed run in fp16 resumes with its scale, and only in fp16", "[apps]") {
  const Workplace undisturbed;
  undisturbed.write("run.toml", run);
  const std::string long_one = "train.steps=300";
  const std::string wanted = digest_of(train(undisturbed, {long_one}));
  const Workplace here;
  here.write("run.toml", run);
  Launch launch;
  launch.arguments = {"train", "run.toml", "--set", long_one};
  launch.while_it_runs = [&](pid_t child) {
    // Waits for the first checkpoint.
    while (here.read("runs/halves/events.jsonl").find("checkpoint.saved") == std::string::npos) {
      const timespec pause{0, 1'000'000};
      nanosleep(&pause, nullptr);
    }
    kill(child, SIGKILL);
  };
  REQUIRE(troupe::tests::troupe(here, launch).code == 128 + SIGKILL);
  for (const std::string other : {"fp32", "bf16-pairs"}) {
    const Ended refused = train(here, {long_one, "precision.compute=" + other}, true);
    CHECK(refused.code == 3);
    CHECK(refused.err.find("precision.compute") != std::string::npos);
  }
  const Ended scaled = train(here, {long_one, "precision.loss_scale.growth_interval=9"}, true);
  CHECK(scaled.code == 3);
  const Ended resumed = train(here, {long_one, "precision.compute=auto"}, true);
  CHECK(digest_of(resumed) == wanted);
  CHECK(resumed.events("step").front().find("loss_scale")->number() < 0x1p24);
}
