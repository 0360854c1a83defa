#include <utility>

#include "models/description/expansion/expander.h"
#include "models/layers/scale.h"

namespace troupe::models {

void Expander::finish() {
  const auto& place = description_.parts.back().place;
  if (!at_.fault && !unit_.empty()) end_last();
  if (!at_.fault) check_kept();
  if (!at_.fault && model_.units.empty()) at_.fail(place, "the model has no layers");
  if (at_.fault) return;
  model_.kind = description_.name;
  switch (description_.loss.kind) {
    case LossKind::cross_entropy:
      end_in_classes();
      break;
    case LossKind::binary:
      end_in_numbers(kernels::ElementLoss::binary);
      break;
    case LossKind::squared:
      end_in_numbers(kernels::ElementLoss::squared);
      break;
  }
  if (!at_.fault && lora_) freeze_base();
}

void Expander::fail_of_output(const Place& place, const std::string& taken) {
  at_.fail(place, "the loss takes " + taken + " and gets " + to_text(current_.flow));
  if (!current_.maker) return;
  at_.fault->made_at = current_.maker->place;
  at_.fault->maker = current_.maker_label;
}

void Expander::end_in_classes() {
  const auto& wanted = *description_.loss.classes;
  const auto classes = at_.integer(wanted, "the number of classes");
  if (at_.fault) return;
  if (current_.flow.kind != Flow::Kind::rows || current_.flow.width() != classes)
    return fail_of_output(wanted.place, "rows of " + std::to_string(classes) + " classes");
  for (int i = 0; i + 1 < current_.flow.shape.rank(); ++i)
    model_.sample.target.append(current_.flow.shape[i]);
  const bool is_of_tokens = model_.sample.input_type == DType::i32;
  if (is_of_tokens && model_.sample.more.empty() && !predicts_tokens(classes)) return;
  copy_held_output();
  const auto form = loss_form();
  model_.loss = std::make_unique<const CrossEntropy>(form);
  model_.ignore = form.ignore;
  model_.classes = classes;
}

/// Copies an output that the last step saved, or that is a kept value: the loss over classes
/// overwrites what it gets.
void Expander::copy_held_output() {
  const auto kind = last_step_ ? last_step_->kind->name : "";
  if (kind != "relu" && kind != "take") return;
  auto& last = model_.units.back().layer;
  Layers both;
  both.push_back(plain(std::move(last)));
  both.push_back(plain(std::make_unique<const Scale>(1.0f)));
  last = sequence_of(std::move(both));
}

/// Ends in a loss of each number of the output.
void Expander::end_in_numbers(kernels::ElementLoss loss) {
  const auto& described = description_.loss;
  if (current_.flow.has_integers()) return fail_of_output(described.place, "numbers");
  if (const Value* given = options_.find("loss"); given && given->map() && !given->map()->empty())
    return at_.fail(Place(), "model.loss." + given->map()->front().key +
                                 " changes a loss over classes, and the loss of this model is " +
                                 (loss == kernels::ElementLoss::binary ? "binary" : "squared") +
                                 "; leave it out");
  model_.sample.target = current_.flow.shape;
  model_.sample.target_type = target_type_of(described.kind);
  model_.sample.target_bounds = target_bounds_of(described.kind);
  model_.loss = std::make_unique<const ElementLoss>(loss);
}

/// Returns an option of the loss, if the configuration or else the description gives it.
template <class IsGood>
std::optional<Value> Expander::loss_option(const std::string& key,
                                           const std::optional<PlacedFormula>& described,
                                           IsGood is_good, const std::string& wanted) {
  const Value* table = options_.find("loss");
  const Value* given = table ? table->find(key) : nullptr;
  if (at_.fault || (!given && !described)) return {};
  Value value = given ? *given : at_.value(*described);
  if (at_.fault) return {};
  if (is_good(value)) return value;
  at_.fail(given ? Place() : described->place,
           (given ? "model.loss." : "loss.") + key + " is not " + wanted);
  return {};
}

kernels::CrossEntropyForm Expander::loss_form() {
  const auto& described = description_.loss;
  const auto is_label = [](const Value& value) {
    return value.integer() && *value.integer() >= INT32_MIN && *value.integer() <= INT32_MAX;
  };
  const auto is_share = [](const Value& value) {
    return value.is_number() && value.number() >= 0 && value.number() <= 1;
  };
  const auto share = [&](const std::string& key, const std::optional<PlacedFormula>& formula) {
    const auto value = loss_option(key, formula, is_share, "a number from 0 to 1");
    return value ? static_cast<float>(value->number()) : 0.0f;
  };
  kernels::CrossEntropyForm form;
  if (const auto ignore = loss_option("ignore", described.ignore, is_label,
                                      "an integer from -2147483648 to 2147483647"))
    form.ignore = static_cast<std::int32_t>(*ignore->integer());
  form.smoothing = share("smoothing", described.smoothing);
  form.z = share("z", described.z);
  return form;
}

/// Data give each token the next one as its target, so a model of tokens alone predicts tokens.
bool Expander::predicts_tokens(std::int64_t classes) {
  if (!(model_.sample.target == model_.sample.input))
    at_.fail(description_.loss.classes->place, "the loss takes a row for each of the tokens " +
                                                   to_string(model_.sample.input) + " and gets " +
                                                   to_text(current_.flow));
  else if (model_.sample.bounds.below != classes)
    at_.fail(description_.loss.classes->place, "tokens are below " +
                                                   std::to_string(model_.sample.bounds.below) +
                                                   ", and the loss has " + std::to_string(classes) +
                                                   " classes; both are the size of the vocabulary");
  return !at_.fault;
}

}  // namespace troupe::models
