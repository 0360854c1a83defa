#include "apps/weights/foreign_weights.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "config/model_kinds.h"
#include "core/memory/stream.h"
#include "kernels/rounding.h"
#include "models/layers/lora.h"
#include "storage/checkpoint/match.h"

namespace troupe::apps {
namespace {

/// The names that files may have beside those of a model, by the `huggingface` entries of its
/// description.
struct Beside {
  std::vector<std::string> prefixes;
  std::vector<std::string> leave;  // Such as "*.attn.bias".
  std::map<std::string, std::string> copies;
  std::map<std::string, std::string> renamed;  // Last words of names.
};

Beside beside(const models::Model& model) {
  Beside all;
  if (const auto* kind = config::find_model_kind(model.kind)) {
    for (const auto& entry : kind->hugging_face()) {
      all.prefixes.insert(all.prefixes.end(), entry.prefixes.begin(), entry.prefixes.end());
      all.leave.insert(all.leave.end(), entry.leave.begin(), entry.leave.end());
      all.copies.insert(entry.copies.begin(), entry.copies.end());
      all.renamed.insert(entry.renamed.begin(), entry.renamed.end());
    }
    const bool is_known = std::ranges::any_of(kind->hugging_face(), [](const auto& entry) {
      return entry.library == models::HuggingFace::Library::transformers;
    });
    if (is_known) return all;
  }
  all.prefixes = {"transformer.", "model."};
  for (const char* mask : {"*.attn.bias", "*.attn.masked_bias", "*.rotary_emb.inv_freq"})
    all.leave.emplace_back(mask);
  return all;
}

/// How many batches a batch norm of PyTorch has seen. Nothing here uses it, so nobody misses it.
constexpr std::string_view batch_count = ".num_batches_tracked";

/// Returns whether the tensor has nothing learned, such as a mask that older libraries saved.
bool is_left(std::string_view name, const std::vector<std::string>& leave) {
  return std::ranges::any_of(leave, [&](std::string_view pattern) {
    if (!pattern.starts_with('*')) return name == pattern;
    return name.ends_with(pattern.substr(1));
  });
}

/// Gives a tensor that the model lacks the name of one that it has, if only the last word differs.
void rename(std::string& name, const std::map<std::string, std::string>& renamed,
            const std::set<std::string>& names) {
  const auto dot = name.rfind('.');
  if (names.contains(name) || dot == name.npos) return;
  const auto ours = renamed.find(name.substr(dot + 1));
  if (ours == renamed.end()) return;
  auto known = name.substr(0, dot + 1) + ours->second;
  if (names.contains(known)) name = std::move(known);
}

/// Returns the prefix that the names of a file have and those of the model lack.
std::string_view prefix_of(const std::vector<std::string>& prefixes,
                           const std::vector<storage::TensorView>& tensors,
                           const std::set<std::string>& names) {
  for (const std::string_view prefix : prefixes) {
    const auto starts = [&](const auto& name) { return name.starts_with(prefix); };
    if (std::ranges::none_of(names, starts) &&
        std::ranges::any_of(tensors, starts, &storage::TensorView::name))
      return prefix;
  }
  return {};
}

/// Checks that a tensor which the model lacks is a copy of one that it has.
Status check_copy(const storage::TensorView& copy, const storage::TensorView& of,
                  MemoryPool& memory) {
  const auto first = storage::load(copy, memory), second = storage::load(of, memory);
  if (!first) return within(copy.name, first.error());
  if (!second) return within(of.name, second.error());
  if (first->dtype() == second->dtype() && first->shape() == second->shape() &&
      std::memcmp(first->raw(), second->raw(), first->bytes()) == 0)
    return Done{};
  return Error{copy.name + ": found other numbers than those of " + of.name +
               ", wanted equal ones, because the model ties both; set model.tied = false if the "
               "model has that option"};
}

}  // namespace

Result<ForeignWeights> read_weights(const std::vector<storage::TensorView>& found,
                                    const models::Model& model, MemoryPool& memory) {
  const bool has_lora =
      std::ranges::any_of(found, [](const auto& view) { return models::is_of_lora(view.name); });
  std::vector<storage::WantedTensor> wanted;
  std::set<std::string> names;
  for (const auto& unit : model.units) {
    for (const auto& parameter : unit.layer->parameters())
      if ((has_lora || !models::is_of_lora(parameter.name)) && names.insert(parameter.name).second)
        wanted.push_back({parameter.name, parameter.shape});
    for (const auto& buffer : unit.layer->buffers())
      if (names.insert(buffer.name).second) wanted.push_back({buffer.name, buffer.shape});
  }
  ForeignWeights weights;
  const auto more = beside(model);
  weights.prefix = prefix_of(more.prefixes, found, names);
  std::vector<storage::TensorView> views, copies;
  for (auto view : found) {
    if (view.name.ends_with(batch_count)) continue;
    if (is_left(view.name, more.leave) && !names.contains(view.name)) {
      weights.ignored.push_back(view.name);
      continue;
    }
    if (view.name.starts_with(weights.prefix)) view.name.erase(0, weights.prefix.size());
    rename(view.name, more.renamed, names);
    if (const auto copy = more.copies.find(view.name);
        copy != more.copies.end() && !names.contains(view.name) && names.contains(copy->second)) {
      copies.push_back(std::move(view));
      continue;
    }
    views.push_back(std::move(view));
  }
  if (auto matched = storage::match_tensors(views, wanted); !matched) return matched.error();
  for (const auto& copy : copies) {
    const auto of = std::ranges::find(views, more.copies.at(copy.name), &storage::TensorView::name);
    if (auto good = check_copy(copy, *of, memory); !good) return good.error();
    weights.ignored.push_back(copy.name);
  }
  for (const auto& view : views) {
    auto tensor = storage::load(view, memory);
    if (!tensor) return within(view.name, tensor.error());
    weights.tensors.push_back({view.name, std::move(*tensor)});
  }
  return weights;
}

void widen(std::vector<NamedTensor>& tensors, MemoryPool& memory) {
  Stream stream(memory);
  for (auto& [name, tensor] : tensors)
    if (tensor.dtype() == DType::bf16 || tensor.dtype() == DType::f16)
      tensor = kernels::as_type(stream, tensor, DType::f32);
}

}  // namespace troupe::apps
