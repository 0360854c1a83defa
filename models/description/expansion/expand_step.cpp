#include <algorithm>
#include <utility>

#include "models/description/expansion/expander.h"

namespace troupe::models {

void Expander::add_step(const Step& step, Outermost outermost, Layers& into) {
  auto options = at_.options_of(step);
  const auto own_name = step.name ? at_.text(*step.name, "the name of a step") : std::string();
  if (at_.fault) return;
  const auto name = full_name(part_name_, own_name);
  // An addition to a tied matrix could not be merged: its other user has none.
  const bool is_tied = parameters_.contains(name + ".weight");
  if (lora_ && !is_tied) options.set_lora(&*lora_);
  if (step.kind->head == StepKind::Head::name && !is_parameter_name(name))
    return at_.fail(step.name ? step.name->place : step.place,
                    "the name of parameters has 1 to 256 letters, digits and ._-/:");
  const auto words = label(step, own_name);
  read_values(step, words, options);
  if (at_.fault) return;
  const auto* of = step.kind->name == "embed" ? options.read("of") : nullptr;
  if (of && !of->is_stream && !may_leave_stream(step, words, outermost)) return;
  if (outermost == Outermost::yes) add_keeps(into);
  const auto output = step.kind->check(options, current_.flow);
  if (!output) return fail_of_flow(step, words, output.error().text, current_);
  if (step.kind->name == "moe") count_experts(step, options.integer("count"));
  if (at_.fault) return;
  const auto before = into.size();
  step.kind->build({name, options, current_.flow, draws_, into, model_.kept, part_name_});
  std::string relative;  // The biases that an attention may share.
  if (step.kind->name == "attention" && options.has("relative"))
    relative = full_name(part_name_, std::string(options.text("relative"))) + ".weight";
  for (auto i = before; i < into.size(); ++i) check_parameters(step, into[i], relative);
  // The maker is the step that gave the stream its shape.
  const bool is_new = !current_.maker || !(output->shape == current_.flow.shape) ||
                      output->kind != current_.flow.kind;
  if (is_new) current_ = {*output, &step, words + variables_text()};
  check_size(output->shape, step.place, "the result of " + words);
}

std::string Expander::label(const Step& step, const std::string& name) {
  return std::string(step.kind->name) + (name.empty() ? "" : " '" + name + "'");
}

std::string Expander::variables_text() const {
  std::string text;
  for (const auto& variable : variables_) text += ", " + variable;
  return text;
}

void Expander::fail_of_flow(const Step& step, const std::string& words, const std::string& what,
                            const Current& stream) {
  at_.fail(step.place, words + " " + what);
  if (!stream.maker) return;
  at_.fault->made_at = stream.maker->place;
  at_.fault->maker = stream.maker_label;
}

void Expander::check_size(const Shape& shape, const Place& place, const std::string& what) {
  std::int64_t count = 1;
  bool overflows = false;
  for (const auto size : shape)
    overflows |= __builtin_mul_overflow(count, std::max<std::int64_t>(size, 1), &count);
  if (overflows || count > bounds::numbers)
    at_.fail(place, what + " has more than 2^48 numbers: " + to_string(shape));
}

/// Parameters are shared by their names. All who declare one must mean the same one.
void Expander::check_parameters(const Step& step, const BuiltLayer& layer,
                                const std::string& relative) {
  for (auto& parameter : layer.parameters()) {
    check_size(parameter.shape, step.place, "'" + parameter.name + "'");
    if (at_.fault) return;
    if (step.kind->name == "moe" && parameter.lora_rank > 0)
      return at_.fail(step.place, "model.lora.match matches '" + parameter.name +
                                      "', but experts of a moe step have no low-rank additions; "
                                      "match other projections, such as those of attention");
    const auto name = parameter.name;
    const bool may_share =
        step.kind->name == "embed" || step.kind->name == "linear" || name == relative;
    const auto [known, is_new] =
        parameters_.emplace(name, Declared{std::move(parameter), step.place, may_share});
    if (is_new) continue;
    check_shared(step, known->second, layer_parameter(layer, name), may_share);
  }
}

Parameter Expander::layer_parameter(const BuiltLayer& layer, const std::string& name) {
  const auto all = layer.parameters();
  return *std::ranges::find(all, name, &Parameter::name);
}

void Expander::check_shared(const Step& step, const Declared& first, const Parameter& again,
                            bool may_share) {
  const auto said = "'" + again.name + "' is declared at " + to_text(first.place) + " too, ";
  const bool same =
      first.parameter.shape == again.shape && first.parameter.init.kind == again.init.kind &&
      first.parameter.init.scale == again.init.scale && first.parameter.place == again.place &&
      (first.parameter.use != again.use || first.parameter.layout == again.layout);
  if (!first.may_share || !may_share)
    at_.fail(step.place, said +
                             "and only embed, linear and relative biases share parameters; use "
                             "another name");
  else if (!same)
    at_.fail(step.place,
             said + "with another shape, init, place or layout; both must agree to be tied");
}

}  // namespace troupe::models
