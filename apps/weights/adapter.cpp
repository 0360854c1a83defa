#include "apps/weights/adapter.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "config/model_kinds.h"
#include "core/json.h"
#include "core/memory/stream.h"
#include "kernels/rounding.h"
#include "models/layers/lora.h"
#include "storage/files/weight_files.h"

namespace troupe::apps {
namespace {

constexpr std::string_view ending = ".weight";
constexpr std::string_view a_ending = ".lora_A.weight", b_ending = ".lora_B.weight";

/// Returns a tensor of the views in fp32.
Result<Tensor> numbers_of(const std::vector<storage::TensorView>& views, const std::string& name,
                          MemoryPool& memory) {
  const auto found = std::ranges::find(views, name, &storage::TensorView::name);
  if (found == views.end()) return Error{"there is no tensor '" + name + "'"};
  auto tensor = storage::load(*found, memory);
  if (!tensor) return within(name, tensor.error());
  Stream stream(memory);
  return kernels::as_type(stream, *tensor, DType::f32);
}

/// An addition: the matrix W, and A [rank, inputs] and B [outputs, rank].
struct Addition {
  Tensor w, a, b;
  double scale = 1;
  bool is_out_in = true;
};

/// Adds scale (A B) to W, element by element.
void merge(Addition& addition) {
  const auto rank = addition.a.shape()[0], inputs = addition.a.shape()[1];
  const auto outputs = addition.b.shape()[0];
  const auto a = std::as_const(addition.a).numbers<float>();
  const auto b = std::as_const(addition.b).numbers<float>();
  float* w = addition.w.f32();
  for (std::int64_t o = 0; o < outputs; ++o)
    for (std::int64_t i = 0; i < inputs; ++i) {
      double sum = 0;
      for (std::int64_t r = 0; r < rank; ++r)
        sum += static_cast<double>(b[static_cast<std::size_t>(o * rank + r)]) *
               static_cast<double>(a[static_cast<std::size_t>(r * inputs + i)]);
      float& element = w[addition.is_out_in ? o * inputs + i : i * outputs + o];
      element = static_cast<float>(static_cast<double>(element) + addition.scale * sum);
    }
}

/// Returns the matrices of a model that have additions, by name without ".weight".
Result<std::map<std::string, models::Parameter>> adapted(const Value& table) {
  const auto model = config::model_from(table);
  if (!model) return model.error();
  std::map<std::string, models::Parameter> matrices;
  for (const auto& unit : model->units)
    for (const auto& parameter : unit.layer->parameters())
      if (parameter.lora_rank > 0)
        matrices.emplace(parameter.name.substr(0, parameter.name.size() - ending.size()),
                         parameter);
  return matrices;
}

}  // namespace

bool has_lora(const Value& model) { return model.find("lora") != nullptr; }

Value without_lora(Value model) {
  std::erase_if(*model.map(), [](const Value::Entry& entry) { return entry.key == "lora"; });
  return model;
}

Result<std::vector<Tensor>> merge_lora(std::vector<storage::TensorView>& views, const Value& model,
                                       MemoryPool& memory) {
  const auto matrices = adapted(model);
  if (!matrices) return matrices.error();
  std::vector<Tensor> merged;
  merged.reserve(matrices->size());
  for (const auto& [name, parameter] : *matrices) {
    Addition addition;
    addition.scale = parameter.lora_scale;
    addition.is_out_in = parameter.layout == kernels::WeightLayout::out_in;
    for (const auto& [end, into] :
         {std::pair{ending, &addition.w}, {a_ending, &addition.a}, {b_ending, &addition.b}}) {
      auto tensor = numbers_of(views, name + std::string(end), memory);
      if (!tensor) return tensor.error();
      *into = std::move(*tensor);
    }
    Tensor own = Tensor::make(memory, addition.w.shape());
    std::ranges::copy(std::as_const(addition.w).host_bytes(), own.host_bytes().begin());
    addition.w = std::move(own);
    merge(addition);
    merged.push_back(std::move(addition.w));
    const auto whole = std::ranges::find(views, parameter.name, &storage::TensorView::name);
    *whole = storage::view(parameter.name, merged.back());
  }
  std::erase_if(views, [](const auto& view) { return models::is_of_lora(view.name); });
  return merged;
}

Result<std::uint64_t> export_adapter(storage::Files& files, const std::string& folder,
                                     const std::vector<storage::TensorView>& views,
                                     const Value& model, const storage::Metadata& metadata) {
  const auto matrices = adapted(model);
  if (!matrices) return matrices.error();
  // transformers calls the body of GPT-2 "transformer", and so do files that it writes with a head.
  const std::string kind = *model.find("kind")->text();
  const std::string before = kind == "gpt2" ? "base_model.model.transformer." : "base_model.model.";
  std::vector<storage::TensorView> additions;
  for (auto view : views)
    if (models::is_of_lora(view.name)) {
      view.name = before + view.name;
      additions.push_back(std::move(view));
    }
  Value::List targets;
  bool is_out_in = true;
  for (const auto& [name, parameter] : *matrices) {
    targets.push_back(name);
    is_out_in = parameter.layout == kernels::WeightLayout::out_in;
  }
  const auto& any = matrices->begin()->second;
  Value config;
  config.set("peft_type", "LORA");
  config.set("task_type", "CAUSAL_LM");
  config.set("base_model_name_or_path", Value());
  config.set("r", any.lora_rank);
  config.set("lora_alpha", any.lora_scale * static_cast<double>(any.lora_rank));
  config.set("lora_dropout", any.lora_rate);
  config.set("bias", "none");
  config.set("fan_in_fan_out", !is_out_in);
  config.set("inference_mode", true);
  config.set("target_modules", std::move(targets));
  if (auto made = files.make_directory(folder); !made) return made.error();
  const auto written =
      storage::write_safetensors(files, folder + "/adapter_model.safetensors", additions, metadata);
  if (!written) return written.error();
  if (auto done =
          storage::replace_file(files, folder + "/adapter_config.json", to_json_lines(config));
      !done)
    return done.error();
  return written->bytes;
}

}  // namespace troupe::apps
