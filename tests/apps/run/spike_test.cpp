// Runs whose data has samples with enormous numbers, which they leave out.

#include <array>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/program.h"
#include "apps/run/killed_run.h"
#include "catch.h"
#include "core/json.h"
#include "storage/files/files.h"
#include "storage/files/safetensors.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

const std::string spiking_run = R"(
name = "spiky"
seed = 3
[model]
kind = "mlp"
dims = [4, 16, 3]
[data]
train = "spiky.safetensors"
order = "sequential"
[batch]
global = 8
micro  = 4
[optimizer]
kind = "sgd"
lr   = 0.05
[checkpoint]
every = "4 steps"
[train]
steps = 40
on_spike = "skip"
spike_factor = 10
spike_window = 5
)";

/// Writes 240 samples. Step 17 reads the enormous ones, one of each class: two at least have a
/// high loss.
void write_spiky(const Workplace& here) {
  constexpr std::int64_t samples = 240, dims = 4, classes = 3, enormous = 16 * 8 + 3;
  std::vector<float> input;
  std::vector<std::int32_t> target;
  for (std::int64_t i = 0; i < samples; ++i) {
    target.push_back(static_cast<std::int32_t>(i % classes));
    for (std::int64_t j = 0; j < dims; ++j)
      input.push_back(
          (static_cast<float>((7 * i + 5 * j) % 11 - 5) / 8.0F + static_cast<float>(i % classes)) *
          (i >= enormous && i < enormous + classes ? 1e6F : 1.0F));
  }
  const auto view = [](const auto& numbers, const char* name, storage::StoredType type,
                       Shape shape) {
    return storage::TensorView{name, type, shape, std::as_bytes(std::span(numbers))};
  };
  const auto disk = storage::disk_files();
  REQUIRE(storage::write_safetensors(
      *disk, (here.path() / "spiky.safetensors").string(),
      std::array{view(input, "input", storage::StoredType::f32, {samples, dims}),
                 view(target, "target", storage::StoredType::i32, {samples})}));
}

std::string final_weights(const Workplace& here, const std::string& run) {
  return here.read("runs/" + run + "/checkpoints/step-000000000040/weights.safetensors");
}

void train_spiky(const Workplace& here, std::vector<std::string> words) {
  words.insert(words.begin(), {"train", "run.toml", "-q"});
  const Ended ended = troupe::tests::troupe(here, words);
  INFO(ended.err);
  REQUIRE(ended.code == 0);
}

}  // namespace

TEST_CASE("a run leaves out the samples of a spike, whatever ends it", "[apps]") {
  const Workplace here;
  write_spiky(here);
  here.write("run.toml", spiking_run);
  train_spiky(here, {"--set", "name=planned", "--set", "train.skip_steps=[17]"});
  train_spiky(here, {});
  CHECK(final_weights(here, "spiky") == final_weights(here, "planned"));
  train_spiky(here, {"--set", "name=stages", "--set", "pipeline.stages=2"});
  CHECK(final_weights(here, "stages") == final_weights(here, "planned"));
  CHECK(mentions(here.read("runs/spiky/events.jsonl"), "\"type\":\"run.spike\""));
  CHECK(mentions(here.read("runs/spiky/changes.toml"), "train.skip_steps = [17]"));
  const Ended audited = troupe::tests::troupe(here, {"audit", "spiky", "--data"});
  INFO(audited.out);
  CHECK(audited.code == 0);
  CHECK(mentions(audited.out,
                 "1 of them changed no weights, because their samples were left out: step 17"));
  const Ended logs = troupe::tests::troupe(here, {"report", "spiky", "--out", "report.html"});
  CHECK(logs.code == 0);

  // Killed at random moments.
  std::mt19937 random(11);
  int kills = 0;
  for (int round = 0; round < 3; ++round) {
    const std::string run = "killed" + std::to_string(round);
    kills += train_through_kills(here, run, {"--set", "name=" + run}, 5, 20'000, random);
    CHECK(final_weights(here, run) == final_weights(here, "planned"));
    CHECK(troupe::tests::troupe(here, {"audit", run}).code == 0);
  }
  CHECK(kills > 0);
}

TEST_CASE("a run that stops at a spike can leave it out when it is resumed", "[apps]") {
  const Workplace here;
  write_spiky(here);
  here.write("run.toml", spiking_run);
  train_spiky(here, {"--set", "name=planned", "--set", "train.skip_steps=[17]"});
  const Ended stopped =
      troupe::tests::troupe(here, {"train", "run.toml", "-q", "--set", "train.on_spike=stop"});
  CHECK(stopped.code == 1);
  CHECK(mentions(here.read("runs/spiky/events.jsonl"), "step 17: the loss is "));
  train_spiky(here, {"--resume"});
  CHECK(final_weights(here, "spiky") == final_weights(here, "planned"));
}

TEST_CASE("nodes leave out a spike together, also if one of them dies", "[apps][cluster]") {
  const Workplace here;
  write_spiky(here);
  const auto run = here.write("run.toml", spiking_run);
  const auto submit = [&](const std::string& name, const std::string& more) {
    return "[[act]]\nsubmit = \"" + run + "\"\nset = [\"name=" + name +
           "\", \"pipeline.stages=2\"" + more + "]\n";
  };
  const auto ends = [](const std::string& name, const std::string& state) {
    return "expect = { type = \"run.state\", run = \"" + name + "\", state = \"" + state +
           "\" }\nwithin = \"60s\"\n";
  };
  const Ended played = troupe::tests::troupe(
      here, {"play", here.write("scenario.toml",
                                "[cluster]\nnodes = 2\n" +
                                    submit("planned", ", \"train.skip_steps=[17]\"") +
                                    ends("planned", "done") + submit("calm", "") +
                                    ends("calm", "done") + submit("stormy", "") + R"([[act]]
when = { type = "run.spike", run = "stormy" }
send = { type = "chaos", what = "kill", target = "node-1" }
[[act]]
)" + ends("stormy", "done") +
                                    "[[act]]\nsame_weights = [\"calm\", \"planned\"]\n"
                                    "[[act]]\nsame_weights = [\"stormy\", \"planned\"]\n")});
  INFO(played.err);
  CHECK(played.code == 0);
  for (const std::string name : {"calm", "stormy"})
    CHECK(troupe::tests::troupe(here, {"audit", name}).code == 0);
}
