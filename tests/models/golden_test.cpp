// The layers, stages and optimizers against PyTorch's traces in float64.

#include <cmath>
#include <fstream>
#include <sstream>

#include "catch.h"
#include "core/json.h"
#include "storage/files.h"
#include "storage/safetensors.h"
#include "training.h"

using namespace troupe;
using namespace troupe::models;

namespace {

const std::string golden = TROUPE_TEST_DATA "/../golden/";

Value read_trace(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  auto trace = parse_json(text.str());
  REQUIRE(trace.ok());
  return *trace;
}

std::vector<NamedTensor> read_tensors(const std::string& path, MemoryPool& memory) {
  const auto files = storage::disk_files();
  const auto file = storage::Safetensors::open(*files, path);
  REQUIRE(file.ok());
  std::vector<NamedTensor> tensors;
  for (const auto& view : file->tensors()) {
    auto tensor = storage::load(view, memory);
    REQUIRE(tensor.ok());
    tensors.push_back({view.name, std::move(*tensor)});
  }
  return tensors;
}

const Tensor& find(const std::vector<NamedTensor>& tensors, const std::string& name) {
  for (const auto& [found, tensor] : tensors)
    if (found == name) return tensor;
  FAIL("no tensor " << name);
  return tensors[0].tensor;
}

/// The trace's short names are our keys.
std::string key_of(const std::string& name) {
  if (name == "d") return "width";
  if (name == "ctx") return "context";
  if (name == "h") return "heads";
  if (name == "kv") return "kv_heads";
  if (name == "f") return "ffn";
  if (name == "ch") return "channels";
  return name;
}

Model model_of(const Value& trace) {
  Value options;
  for (const auto& [key, value, position] : *trace.find("model")->map())
    options.set(key_of(key), value);
  const std::string kind = *options.find("kind")->text();
  if (kind == "llama") options.set("context", 16);
  return build(kind, options);
}

OptimizerConfig optimizer_of(const Value& trace) {
  const Value& given = *trace.find("optimizer");
  const auto number = [&](const Value& table, const char* key) {
    return table.find(key) ? table.find(key)->number() : 0;
  };
  OptimizerConfig config;
  const std::string name = *given.find("name")->text();
  config.kind = name == "sgd"    ? OptimizerConfig::Kind::sgd
                : name == "adam" ? OptimizerConfig::Kind::adam
                                 : OptimizerConfig::Kind::adamw;
  config.momentum = number(given, "momentum");
  config.weight_decay = number(given, "weight_decay");
  config.clip_norm = number(given, "clip_norm");
  config.rate.lr = number(given, "lr");
  if (const Value* betas = given.find("betas")) {
    config.beta1 = (*betas->list())[0].number();
    config.beta2 = (*betas->list())[1].number();
    config.eps = number(given, "eps");
  }
  if (const Value* schedule = given.find("schedule")) {
    config.rate.kind = LearningRate::Kind::cosine;
    config.rate.warmup_steps = *schedule->find("warmup_steps")->integer();
    config.rate.total_steps = *schedule->find("total_steps")->integer();
    config.rate.min_lr = number(*schedule, "min_lr");
  }
  return config;
}

double relative(double found, double wanted) { return std::abs(found - wanted) / std::abs(wanted); }

/// Whether the loss depends on this element at all: a softmax does not see what all keys have in
/// common, so the middle third of a fused bias gets the rounding errors of its zero gradient, and
/// Adam makes steps of them.
bool counts(const std::string& name, std::int64_t i, std::int64_t count) {
  const bool fused = name.ends_with(".attn.c_attn.bias") || name.ends_with(".attn.qkv.bias");
  return !fused || i < count / 3 || i >= 2 * count / 3;
}

/// How far tensors are from wanted ones, as a share of the norm of all of these.
double distance(const std::vector<NamedTensor>& found, const std::vector<NamedTensor>& wanted) {
  double difference = 0, whole = 0;
  for (const auto& [name, tensor] : wanted) {
    const Tensor& ours = find(found, name);
    REQUIRE(ours.shape() == tensor.shape());
    for (std::int64_t i = 0; i < tensor.count(); ++i) {
      if (!counts(name, i, tensor.count())) continue;
      const double a = ours.f32()[i], b = tensor.f32()[i];
      difference += (a - b) * (a - b);
      whole += b * b;
    }
  }
  return std::sqrt(difference / whole);
}

}  // namespace

TEST_CASE("training follows PyTorch's trace", "[models]") {
  const std::string kind = GENERATE("mlp", "gpt2", "llama", "vit", "resnet");
  const std::string optimizer = GENERATE("sgd", "adam", "adamw", "adamw-cosine");
  const std::string folder = golden + kind + "/";
  CAPTURE(kind, optimizer);
  const Value trace = read_trace(folder + optimizer + ".json");
  const Model model = model_of(trace);
  const auto config = optimizer_of(trace);
  const auto micro_batches = static_cast<int>(*trace.find("micro_batches")->integer());
  const auto samples = micro_batches * *trace.find("micro_batch_size")->integer();
  MemoryPool memory;
  Pipeline pipeline({.model = model, .optimizer = config, .micro_batches = micro_batches}, {});
  pipeline.start_from(read_tensors(folder + "init.safetensors", memory));
  const auto data = read_tensors(folder + "data.safetensors", memory);

  for (const Value& row : *trace.find("trace")->list()) {
    const auto step = *row.find("step")->integer();
    const auto result = pipeline.step({find(data, "input").slice(step * samples, samples),
                                       find(data, "target").slice(step * samples, samples)});
    CAPTURE(step);
    CHECK(relative(result.loss, row.find("loss")->number()) < 1e-5);
    CHECK(relative(result.norm, row.find("grad_norm")->number()) < 1e-4);
    CHECK(relative(config.rate.at(step), row.find("lr")->number()) < 1e-12);
  }
  const auto wanted = read_tensors(folder + optimizer + ".final.safetensors", memory);
  CHECK(pipeline.weights().size() == wanted.size());
  CHECK(distance(pipeline.weights(), wanted) < 1e-4);
}

TEST_CASE("in fp16 training stays near PyTorch's trace", "[models]") {
  const std::string folder = golden + "gpt2/";
  const Value trace = read_trace(folder + "adamw.json");
  const Model model = model_of(trace);
  const auto micro_batches = static_cast<int>(*trace.find("micro_batches")->integer());
  const auto samples = micro_batches * *trace.find("micro_batch_size")->integer();
  MemoryPool memory;
  Pipeline pipeline({.model = model,
                     .optimizer = optimizer_of(trace),
                     .micro_batches = micro_batches,
                     .precision = kernels::Precision::fp16,
                     .loss_scaling = {.initial_power = 10, .growth_interval = 4}},
                    {});
  pipeline.start_from(read_tensors(folder + "init.safetensors", memory));
  const auto data = read_tensors(folder + "data.safetensors", memory);

  double furthest = 0;
  for (const Value& row : *trace.find("trace")->list()) {
    const auto step = *row.find("step")->integer();
    const auto result = pipeline.step({find(data, "input").slice(step * samples, samples),
                                       find(data, "target").slice(step * samples, samples)});
    CAPTURE(step);
    furthest = std::max(furthest, relative(result.loss, row.find("loss")->number()));
    CHECK(relative(result.norm, row.find("grad_norm")->number()) < 1e-2);
  }
  CHECK(furthest < 1e-3);
  CHECK(furthest > 1e-6);  // It does compute in fp16.
  const auto wanted = read_tensors(folder + "adamw.final.safetensors", memory);
  CHECK(distance(pipeline.weights(), wanted) < 1e-2);
  CHECK(pipeline.loss_scale().power > 10);
}
