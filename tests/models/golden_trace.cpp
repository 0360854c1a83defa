#include "golden_trace.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "catch.h"
#include "storage/files/files.h"
#include "storage/files/safetensors.h"

namespace troupe::models {
namespace {

// TROUPE_GOLDEN names the folder on another host.
const std::string golden = [] {
  const char* folder = std::getenv("TROUPE_GOLDEN");
  return folder ? std::string(folder) + "/" : TROUPE_TEST_DATA "/../golden/";
}();

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

/// Maps the trace's short names to configuration keys.
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

/// Returns whether the loss depends on this element. A softmax ignores a term common to all keys,
/// so the middle third of a fused bias has a zero gradient with rounding errors, which Adam turns
/// into steps.
bool counts(const std::string& name, std::int64_t i, std::int64_t count) {
  const bool fused = name.ends_with(".attn.c_attn.bias") || name.ends_with(".attn.qkv.bias");
  return !fused || i < count / 3 || i >= 2 * count / 3;
}

}  // namespace

GoldenTrace GoldenTrace::read(const std::string& kind, const std::string& optimizer,
                              MemoryPool& memory) {
  const std::string folder = golden + kind + "/";
  const Value trace = read_trace(folder + optimizer + ".json");
  const auto micro_batches = *trace.find("micro_batches")->integer();
  const auto data = read_tensors(folder + "data.safetensors", memory);
  return {.model = model_of(trace),
          .optimizer = optimizer_of(trace),
          .micro_batches = static_cast<int>(micro_batches),
          .samples = micro_batches * *trace.find("micro_batch_size")->integer(),
          .steps = *trace.find("trace"),
          .initial = read_tensors(folder + "init.safetensors", memory),
          .final = read_tensors(folder + optimizer + ".final.safetensors", memory),
          .input = find(data, "input"),
          .target = find(data, "target")};
}

double relative(double found, double wanted) { return std::abs(found - wanted) / std::abs(wanted); }

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

}  // namespace troupe::models
