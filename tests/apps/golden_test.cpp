// Compares the program with PyTorch's traces in float64: `troupe train` starts from the same
// weights and reads the same data in order.

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "apps/program.h"
#include "catch.h"
#include "core/json.h"
#include "storage/files/files.h"
#include "storage/files/safetensors.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

const std::string golden = TROUPE_TESTS "/golden/";

Value read_trace(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  auto trace = parse_json(text.str());
  REQUIRE(trace.ok());
  return *trace;
}

/// Maps the trace's short names to our keys.
std::string key_of(const std::string& name) {
  if (name == "d") return "width";
  if (name == "ctx") return "context";
  if (name == "h") return "heads";
  if (name == "kv") return "kv_heads";
  if (name == "f") return "ffn";
  if (name == "ch") return "channels";
  return name;
}

/// Returns the configuration of a trace's run.
Value configuration(const std::string& model, const Value& trace) {
  Value config;
  config.set("name", "golden");
  Value section;
  for (const auto& [key, value, position] : *trace.find("model")->map())
    section.set(key_of(key), value);
  if (model == "llama") section.set("context", 16);
  section.set("init", golden + model + "/init.safetensors");
  config.set("model", section);
  Value data;
  data.set("train", golden + model + "/data.safetensors");
  data.set("order", "sequential");
  config.set("data", data);
  const auto micro = *trace.find("micro_batch_size")->integer();
  Value batch;
  batch.set("global", micro * *trace.find("micro_batches")->integer());
  batch.set("micro", micro);
  config.set("batch", batch);
  Value optimizer;
  for (const auto& [key, value, position] : *trace.find("optimizer")->map())
    optimizer.set(key == "name" ? "kind" : key, value);
  config.set("optimizer", optimizer);
  Value train;
  train.set("steps", *trace.find("steps")->integer());
  train.set("export", "final.safetensors");
  train.set("threads", 1);
  config.set("train", train);
  Value precision;
  precision.set("compute", "fp32");
  config.set("precision", precision);
  return config;
}

double relative(double found, double wanted) { return std::abs(found - wanted) / std::abs(wanted); }

std::vector<float> numbers(const storage::TensorView& view) {
  std::vector<float> copy(view.bytes.size() / sizeof(float));
  std::memcpy(copy.data(), view.bytes.data(), view.bytes.size());
  return copy;
}

/// Returns whether the loss depends on this element. A softmax ignores a constant that all keys
/// share, so the middle third of a fused bias has a gradient of zero, and Adam takes full steps
/// from its rounding errors.
bool counts(const std::string& name, std::size_t i, std::size_t count) {
  const bool fused = name.ends_with(".attn.c_attn.bias") || name.ends_with(".attn.qkv.bias");
  return !fused || i < count / 3 || i >= 2 * count / 3;
}

/// Returns the distance of all parameters from the golden ones, relative to the golden norm.
double distance_between(const std::string& found_path, const std::string& wanted_path) {
  const auto files = storage::disk_files();
  const auto found = storage::Safetensors::open(*files, found_path);
  const auto wanted = storage::Safetensors::open(*files, wanted_path);
  REQUIRE(found.ok());
  REQUIRE(wanted.ok());
  CHECK(found->tensors().size() == wanted->tensors().size());
  double distance = 0, norm = 0;
  for (const auto& view : wanted->tensors()) {
    const auto* ours = found->find(view.name);
    INFO(view.name);
    REQUIRE(ours);
    REQUIRE(ours->shape == view.shape);
    const auto a = numbers(*ours), b = numbers(view);
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!counts(view.name, i, a.size())) continue;
      distance += (a[i] - b[i]) * (a[i] - b[i]);
      norm += b[i] * b[i];
    }
  }
  return std::sqrt(distance / norm);
}

void follow(const std::string& model, const std::string& optimizer) {
  const Value trace = read_trace(golden + model + "/" + optimizer + ".json");
  const Workplace here;
  here.write("run.json", to_json_lines(configuration(model, trace)));
  const Ended ended = troupe::tests::troupe(here, {"train", "run.json", "--output", "json"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  const auto steps = ended.events("step");
  const auto& wanted = *trace.find("trace")->list();
  REQUIRE(steps.size() == wanted.size());
  // Batch statistics of few images make resnet's clipped gradients sensitive to rounding.
  const bool sensitive = model == "resnet" && trace.find("optimizer")->find("clip_norm");
  double worst_loss = 0, worst_norm = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    worst_loss = std::max(
        worst_loss, relative(steps[i].find("loss")->number(), wanted[i].find("loss")->number()));
    worst_norm = std::max(worst_norm, relative(steps[i].find("grad_norm")->number(),
                                               wanted[i].find("grad_norm")->number()));
    CHECK(relative(steps[i].find("lr")->number(), wanted[i].find("lr")->number()) < 1e-12);
  }
  const double distance = distance_between((here.path() / "final.safetensors").string(),
                                           golden + model + "/" + optimizer + ".final.safetensors");
  INFO("loss " << worst_loss << ", gradient norm " << worst_norm << ", parameters " << distance);
  CHECK(worst_loss <= 1e-5);
  CHECK(worst_norm <= (sensitive ? 1e-3 : 1e-4));
  CHECK(distance <= 1e-4);
}

}  // namespace

#define FOLLOWS(model)                                                                    \
  TEST_CASE("train follows PyTorch: " model " with sgd", "[apps][golden]") {              \
    follow(model, "sgd");                                                                 \
  }                                                                                       \
  TEST_CASE("train follows PyTorch: " model " with adam", "[apps][golden]") {             \
    follow(model, "adam");                                                                \
  }                                                                                       \
  TEST_CASE("train follows PyTorch: " model " with adamw, clipped", "[apps][golden]") {   \
    follow(model, "adamw");                                                               \
  }                                                                                       \
  TEST_CASE("train follows PyTorch: " model " with adamw and cosine", "[apps][golden]") { \
    follow(model, "adamw-cosine");                                                        \
  }

FOLLOWS("mlp")
FOLLOWS("resnet")
FOLLOWS("vit")
FOLLOWS("gpt2")
FOLLOWS("llama")
