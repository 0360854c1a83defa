#include "config/model_kinds.h"

#include <algorithm>
#include <cassert>
#include <utility>
#include <variant>
#include <vector>

#include "config/model_texts.h"
#include "config/toml/toml.h"

namespace troupe::config {
namespace {

struct Shipped {
  std::string_view name;
  std::string_view (*text)();
};

constexpr Shipped shipped[] = {{"mlp", mlp_toml},
                               {"gpt2", gpt2_toml},
                               {"llama", llama_toml},
                               {"vit", vit_toml},
                               {"resnet", resnet_toml},
                               {"gpt_neox", gpt_neox_toml},
                               {"gptj", gptj_toml},
                               {"phi", phi_toml},
                               {"gemma", gemma_toml},
                               {"mixtral", mixtral_toml},
                               {"qwen3_moe", qwen3_moe_toml},
                               {"bert", bert_toml},
                               {"t5", t5_toml}};

std::vector<models::ModelKind> read_all() {
  std::vector<models::ModelKind> kinds;
  for (const auto& [name, text] : shipped) {
    const auto tree = parse_toml(text());
    assert(tree && "a description in config/models is not TOML");
    auto kind = models::ModelKind::read(*tree);
    assert(std::holds_alternative<models::ModelKind>(kind) &&
           "a description in config/models is wrong");
    kinds.push_back(std::get<models::ModelKind>(std::move(kind)));
    assert(kinds.back().name() == name);
  }
  return kinds;
}

}  // namespace

std::span<const models::ModelKind> model_kinds() {
  static const auto kinds = read_all();
  return kinds;
}

const models::ModelKind* find_model_kind(std::string_view name) {
  const auto kinds = model_kinds();
  const auto found =
      std::ranges::find_if(kinds, [&](const auto& kind) { return kind.name() == name; });
  return found == kinds.end() ? nullptr : &*found;
}

FoundPreset find_preset(std::string_view name) {
  for (const auto& kind : model_kinds()) {
    const auto presets = kind.presets();
    const auto found = std::ranges::find(presets, name, &models::Preset::name);
    if (found != presets.end()) return {&kind, &*found};
  }
  return {};
}

Result<models::ModelKind> kind_of(const Value& table) {
  if (const Value* description = table.find("description")) {
    auto read = models::ModelKind::read(*description);
    if (const auto* fault = std::get_if<models::Fault>(&read))
      return within("model.description", models::error_of(*fault));
    return std::get<models::ModelKind>(std::move(read));
  }
  const Value* name = table.find("kind");
  const auto* kind = name && name->text() ? find_model_kind(*name->text()) : nullptr;
  if (!kind) return Error{"model.kind: no model of this program"};
  return *kind;
}

Result<models::Model> model_from(const Value& table, models::Cuts cuts) {
  const auto kind = kind_of(table);
  if (!kind) return kind.error();
  const auto options = models::complete(kind->options(), table);
  if (!options) return options.error();
  return kind->build(*options, cuts);
}

Value table_of_writer(Value table) {
  const auto kind = kind_of(table);
  const bool is_shipped = !table.find("description");
  const Value* apart = table.find("apart");
  if (kind && is_shipped && apart && apart->boolean()) table.set("apart", false);
  return table;
}

std::string_view model_kind_text(std::string_view name) {
  const auto found = std::ranges::find(shipped, name, &Shipped::name);
  assert(found != std::end(shipped));
  return found->text();
}

}  // namespace troupe::config
