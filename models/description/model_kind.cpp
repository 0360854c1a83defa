#include "models/description/model_kind.h"

#include <utility>

#include "models/description/description.h"
#include "models/description/evaluation.h"
#include "models/description/expand.h"

namespace troupe::models {

ModelKind::ModelKind(std::shared_ptr<const Description> description)
    : description_(std::move(description)) {}

std::variant<ModelKind, Fault> ModelKind::read(const Value& tree) {
  auto read = read_description(tree);
  if (auto* fault = std::get_if<Fault>(&read)) return std::move(*fault);
  return ModelKind(std::make_shared<const Description>(std::get<Description>(std::move(read))));
}

const std::string& ModelKind::name() const { return description_->name; }
const std::string& ModelKind::help() const { return description_->help; }
std::span<const Option> ModelKind::options() const { return description_->options; }
std::size_t ModelKind::inputs() const { return description_->inputs.size(); }
std::span<const Preset> ModelKind::presets() const { return description_->presets; }

std::span<const HuggingFace> ModelKind::hugging_face() const { return description_->hugging_face; }

DType ModelKind::target_type() const { return target_type_of(description_->loss.kind); }
NumberBounds ModelKind::target_bounds() const { return target_bounds_of(description_->loss.kind); }

bool ModelKind::may_ignore() const {
  return description_->loss.ignore || target_type() == DType::f32;
}

std::optional<std::int32_t> ModelKind::ignored_target() const {
  if (!description_->loss.ignore) return {};
  const auto value = description_->loss.ignore->formula.evaluate({});
  if (!value || !value->integer()) return {};
  return static_cast<std::int32_t>(*value->integer());
}

Names ModelKind::names_of(const Value& options) const {
  Evaluation at;
  for (const auto& option : description_->options)
    if (const Value* value = options.find(option.name)) at.names.add(option.name, *value);
  at.let(description_->let);  // A name that fails is null. expand() says why it fails.
  return std::move(at.names);
}

std::variant<Model, Fault> ModelKind::expand(const Value& options, Cuts cuts) const {
  return models::expand(*description_, options, cuts);
}

Result<Model> ModelKind::build(const Value& options, Cuts cuts) const {
  auto expanded = expand(options, cuts);
  if (const auto* fault = std::get_if<Fault>(&expanded)) return error_of(*fault);
  return std::get<Model>(std::move(expanded));
}

}  // namespace troupe::models
