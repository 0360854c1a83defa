#include "models/description/expand.h"

#include <algorithm>
#include <utility>

#include "models/description/expansion/expander.h"
#include "models/description/inputs.h"

namespace troupe::models {

std::variant<Model, Fault> Expander::run() {
  for (const auto& option : description_.options)
    if (const Value* value = options_.find(option.name)) at_.names.add(option.name, *value);
  at_.let(description_.let);
  check_options();
  read_inputs();
  read_lora();
  for (const auto& part : description_.parts) {
    if (at_.fault) break;
    add_part(part);
  }
  finish();
  if (at_.fault) return *std::move(at_.fault);
  return std::move(model_);
}

void Expander::check_options() {
  for (const auto& rule : description_.divides) {
    if (at_.fault || (rule.when && !at_.truth(*rule.when))) continue;
    if (auto good = check_divides(named(rule.small), named(rule.large)); !good)
      at_.fail({}, good.error().text);
  }
  for (const auto& rule : description_.require)
    if (!at_.fault && !at_.truth(rule.holds) && !at_.fault)
      at_.fail({}, at_.text(rule.why, "the reason"));
}

NamedInteger Expander::named(const std::string& name) const {
  const Value* value = at_.names.find(name);
  return {name, value && value->integer() ? *value->integer() : 1};
}

void Expander::read_inputs() {
  for (const auto& input : description_.inputs) {
    const bool is_first = &input == &description_.inputs.front();
    if (input.when && !at_.truth(*input.when)) continue;
    const Flow flow = flow_of_input(input, is_first ? InputPlace::first : InputPlace::behind, at_);
    if (at_.fault) return;
    check_size(flow.shape, input.shape.place, "the input");
    const DType type = flow.has_integers() ? DType::i32 : DType::f32;
    const IntegerBounds bounds{flow.below, flow.kind == Flow::Kind::spans};
    if (is_first) {
      current_.flow = flow;
      model_.sample.input = flow.shape;
      model_.sample.input_type = type;
      model_.sample.input_name = input.name;
      model_.sample.bounds = bounds;
      continue;
    }
    kept_.emplace(input.name, Kept{.stream = {flow, nullptr, {}},
                                   .place = input.place,
                                   .number = static_cast<int>(model_.kept.size())});
    model_.sample.more.push_back({input.name, flow.shape, type});
    model_.kept.push_back({.name = input.name,
                           .made = KeptValue::before_units,
                           .type = type,
                           .has_gradient = false,
                           .bounds = bounds});
  }
}

/// Reads the low-rank additions that the options ask for.
void Expander::read_lora() {
  const Value* table = options_.find("lora");
  if (!table || at_.fault) return;
  const Value *rank = table->find("rank"), *alpha = table->find("alpha"),
              *rate = table->find("rate"), *match = table->find("match");
  constexpr std::int64_t most_rank = 65536;
  if (!rank || !rank->integer() || *rank->integer() < 1 || *rank->integer() > most_rank)
    return at_.fail({}, "model.lora.rank is missing, or not an integer from 1 to 65536");
  if (alpha && !alpha->is_number()) return at_.fail({}, "model.lora.alpha is not a number");
  if (rate && !(rate->is_number() && rate->number() >= 0 && rate->number() <= 0.99))
    return at_.fail({}, "model.lora.rate is not a number from 0 to 0.99");
  const bool is_list = match && match->list() && !match->list()->empty() &&
                       std::ranges::all_of(*match->list(), [](const Value& pattern) {
                         return pattern.text() && !pattern.text()->empty();
                       });
  if (!is_list)
    return at_.fail({},
                    "model.lora.match is missing, or not a list of patterns such as "
                    "[\"*.c_attn\"]");
  lora_ = Lora{.rank = *rank->integer(),
               .alpha = alpha ? alpha->number() : rank->number(),
               .rate = rate ? rate->number() : 0,
               .match = {}};
  for (const auto& pattern : *match->list()) lora_->match.push_back(*pattern.text());
}

/// Freezes all but the low-rank additions.
void Expander::freeze_base() {
  std::vector<std::string> matrices;
  bool has_additions = false;
  for (const auto& unit : model_.units)
    for (const auto& parameter : unit.layer->parameters()) {
      if (is_of_lora(parameter.name)) {
        has_additions = true;
        continue;
      }
      model_.frozen.insert(parameter.name);
      if (parameter.use == Parameter::Use::matrix && parameter.name.ends_with(".weight"))
        matrices.push_back(parameter.name.substr(0, parameter.name.size() - 7));
    }
  if (has_additions) return;
  std::string some;
  for (std::size_t i = 0; i < std::min<std::size_t>(4, matrices.size()); ++i)
    some += (i == 0 ? "" : ", ") + matrices[i];
  at_.fail({},
           "model.lora.match matches no projection of linear, attention or feed_forward "
           "steps; the model has matrices such as " +
               some);
}

std::variant<Model, Fault> expand(const Description& description, const Value& options, Cuts cuts) {
  return Expander(description, options, cuts).run();
}

}  // namespace troupe::models
