#include <utility>

#include "models/description/expansion/expander.h"

namespace troupe::models {

void Expander::add_part(const Part& part) { repeat(part, 0); }

/// Defines the variables of a part's repetition from the given one on, and adds each repetition.
void Expander::repeat(const Part& part, std::size_t variable) {
  if (variable == part.repeat.size()) return add_repetition(part);
  const auto& [name, formula] = part.repeat[variable];
  const auto count = at_.integer(formula, "a number of repetitions");
  if (!at_.fault && (count < 0 || count > bounds::steps))
    at_.fail(formula.place, "a part is repeated 0 to " + std::to_string(bounds::steps) +
                                " times, and not " + std::to_string(count));
  for (std::int64_t i = 0; i < count && !at_.fault; ++i) {
    const auto names = at_.names.count();
    at_.names.add(name, i);
    variables_.push_back(name + " = " + std::to_string(i));
    repeat(part, variable + 1);
    variables_.pop_back();
    at_.names.keep(names);
  }
}

void Expander::add_repetition(const Part& part) {
  count_step(part.place);
  set_given();
  const auto names = at_.names.count();
  at_.let(part.let);
  part_name_ = part.name ? at_.text(*part.name, "the name of a part") : std::string();
  if (part.name && !at_.fault && !is_parameter_name(part_name_))
    at_.fail(part.name->place, "the name of a part has at most 256 letters, digits and ._-/:");
  const bool is_unit = part.is_own_unit || !part.repeat.empty();
  has_residual_ = false;
  add_steps(part.body, unit_, Outermost::yes, part);
  if (is_unit) {
    end_unit(part);
    is_behind_cut_ = false;
  }
  at_.names.keep(names);
}

void Expander::end_unit(const Part& part) {
  if (at_.fault || unit_.empty()) return;
  if (model_.units.size() >= bounds::units)
    return at_.fail(part.place, "a model has at most " + std::to_string(bounds::units) + " units");
  model_.units.push_back({unit_name(), sequence_of(std::exchange(unit_, {}))});
}

std::string Expander::unit_name() {
  const auto& base = part_name_.empty() ? description_.name : part_name_;
  const int uses = ++unit_names_[base];
  return uses == 1 ? base : base + "/" + std::to_string(uses);
}

void Expander::add_steps(const std::vector<Step>& steps, Layers& into, Outermost outermost,
                         const Part& part) {
  for (const auto& step : steps) {
    if (at_.fault) return;
    count_step(step.place);
    set_given();
    if (step.when && !at_.truth(*step.when)) continue;
    if (!step.kind)
      add_steps(step.steps, into, outermost, part);
    else if (step.kind->is_cut())
      cut(step, outermost, part);
    else if (step.kind->is_keep())
      keep(step, outermost, into);
    else if (step.kind->is_reader())
      read_kept(step, outermost, into);
    else
      add_layers(step, into, outermost, part);
    if (step.kind && outermost == Outermost::yes && makes_output(*step.kind)) last_step_ = &step;
  }
}

/// Returns whether a step makes its output: a cut does not, and neither does a dropout that keeps
/// all.
bool Expander::makes_output(const StepKind& kind) {
  return !kind.is_cut() && kind.name != "dropout";
}

void Expander::add_layers(const Step& step, Layers& into, Outermost outermost, const Part& part) {
  if (!step.kind->is_residual() && !step.kind->is_parallel())
    return add_step(step, outermost, into);
  if (outermost == Outermost::yes) {
    if (step.kind->is_residual()) {
      if (has_residual_ && cuts_ == Cuts::sublayers) cut(step, outermost, part);
      has_residual_ = true;
    }
    add_keeps(into);
  }
  if (step.kind->is_residual())
    add_residual_step(step, into, part);
  else
    add_parallel_step(step, into, part);
}

void Expander::count_step(const Place& place) {
  if (++steps_ > bounds::steps)
    at_.fail(place, "a model has at most " + std::to_string(bounds::steps) + " steps");
}

/// Each expert counts as a step: it has parameters of its own.
void Expander::count_experts(const Step& step, std::int64_t count) {
  steps_ += count;
  if (steps_ > bounds::steps)
    at_.fail(step.place, "a model has at most " + std::to_string(bounds::steps) +
                             " steps, and each expert counts as one");
}

void Expander::set_given() {
  const auto width = current_.flow.width();
  at_.names.set_given(width > 0 ? Value(width) : Value());
}

void Expander::cut(const Step& step, Outermost outermost, const Part& part) {
  if (outermost == Outermost::no)
    return at_.fail(step.place, "a cut is one of the outermost steps of a part");
  end_unit(part);
  is_behind_cut_ = true;
  has_residual_ = false;
}

/// Adds the layers behind the last unit to it, or makes a unit of them if a cut is before them.
void Expander::end_last() {
  if (model_.units.empty() || is_behind_cut_) return end_unit(description_.parts.back());
  auto& last = model_.units.back().layer;
  Layers both;
  both.push_back(plain(std::move(last)));
  for (auto& layer : unit_) both.push_back(std::move(layer));
  last = sequence_of(std::move(both));
  unit_.clear();
}

}  // namespace troupe::models
