// Values that steps keep, and the model's inputs behind the first one.
#include <algorithm>
#include <utility>

#include "models/description/expansion/expander.h"

namespace troupe::models {

std::string Expander::kept_name(const Step& step) {
  const auto name = at_.text(*step.name, "the name of a kept value");
  if (!at_.fault && !is_parameter_name(name))
    at_.fail(step.name->place, "the name of a kept value has 1 to 256 letters, digits and ._-/:");
  return name;
}

/// The layer that keeps begins the next unit if a unit ends here: so the value does not cross the
/// cut besides the stream.
void Expander::keep(const Step& step, Outermost outermost, const Layers& into) {
  const auto name = kept_name(step);
  if (at_.fault) return;
  if (outermost == Outermost::no)
    return at_.fail(step.place, label(step, name) +
                                    " is inside of a residual or parallel; a keep is one of the "
                                    "outermost steps of a part");
  if (model_.kept.size() - model_.sample.more.size() >= bounds::kept)
    return at_.fail(step.place,
                    "a model keeps at most " + std::to_string(bounds::kept) + " values");
  const bool is_input = model_.units.empty() && into.empty();
  const int number = static_cast<int>(model_.kept.size());
  const auto [known, is_new] =
      kept_.emplace(name, Kept{current_, step.place, number, /*is_read=*/false});
  if (!is_new)
    return at_.fail(step.place,
                    "'" + name + "' is " + origin_of(known->second) + " already; use another name");
  const bool is_tokens = current_.flow.kind == Flow::Kind::tokens;
  model_.kept.push_back({.name = name,
                         .type = is_tokens ? DType::i32 : DType::f32,
                         .has_gradient = !is_tokens && !is_input,
                         .bounds = {.below = current_.flow.below}});
  keeping_.push_back(number);
}

bool Expander::is_input(const Kept& kept) const {
  return model_.kept[static_cast<std::size_t>(kept.number)].is_input();
}

/// Returns "kept at 5:19", or "an input at 3:1".
std::string Expander::origin_of(const Kept& kept) const {
  return (is_input(kept) ? "an input at " : "kept at ") + to_text(kept.place);
}

/// Notes that the unit in the making reads a value.
KeptValue& Expander::note_reader(Kept& kept) {
  auto& value = model_.kept[static_cast<std::size_t>(kept.number)];
  value.last = static_cast<int>(model_.units.size());
  if (!std::exchange(kept.is_read, true)) value.first = value.last;
  return value;
}

/// Finds the values that options of a step name.
void Expander::read_values(const Step& step, const std::string& words, StepOptions& options) {
  for (const auto& option : step.kind->options) {
    if (option.type != StepOption::Type::value || !options.has(option.name)) continue;
    const auto name = std::string(options.text(option.name));
    const auto found = kept_.find(name);
    const bool is_first = found == kept_.end() && name == model_.sample.input_name;
    // Only an embed can read the first input without a keep: no step before it made the stream.
    if (is_first && step.kind->name == "embed" && !current_.maker) {
      options.set_read(option.name, {.flow = current_.flow, .is_stream = true});
      continue;
    }
    if (is_first)
      return at_.fail(step.place, words + " reads the first input, which is the stream before " +
                                      "the first step; put a keep there and read what it keeps");
    if (found == kept_.end())
      return at_.fail(step.place, words + " reads '" + name +
                                      "', which is no input and which no step before it keeps");
    const auto& value = note_reader(found->second);
    options.set_read(option.name, {.number = found->second.number,
                                   .has_gradient = value.has_gradient,
                                   .flow = found->second.stream.flow});
  }
}

/// Adds the layers of keeps that no other layer has followed yet.
void Expander::add_keeps(Layers& into) {
  for (const int number : std::exchange(keeping_, {})) {
    model_.kept[static_cast<std::size_t>(number)].made = static_cast<int>(model_.units.size());
    into.push_back(plain(std::make_unique<const KeepStream>(number)));
  }
}

void Expander::read_kept(const Step& step, Outermost outermost, Layers& into) {
  const auto name = kept_name(step);
  if (at_.fault) return;
  const auto words = label(step, name);
  const auto found = kept_.find(name);
  if (found == kept_.end())
    return at_.fail(step.place, words + " reads a value that no step before it keeps");
  auto& kept = found->second;
  const KeptInput input{kept.number, note_reader(kept).has_gradient};
  if (step.kind->name == "take") return take(words, step, outermost, kept, input, into);
  if (outermost == Outermost::yes) add_keeps(into);
  if (!can_join(step, words, kept)) return;
  if (step.kind->name == "add")
    return into.push_back(plain(std::make_unique<const AddKept>(input)));
  const auto width = current_.flow.width(), kept_width = kept.stream.flow.width();
  const auto along =
      current_.flow.kind == Flow::Kind::images ? Concat::Along::channels : Concat::Along::last;
  into.push_back(plain(std::make_unique<const ConcatKept>(input, along, width, kept_width)));
  current_ = {with_width(current_.flow, width + kept_width), &step, words + variables_text()};
  check_size(current_.flow.shape, step.place, "the result of " + words);
}

void Expander::take(const std::string& words, const Step& step, Outermost outermost,
                    const Kept& kept, const KeptInput& input, Layers& into) {
  if (!may_leave_stream(step, words, outermost)) return;
  if (kept.stream.flow.has_integers())
    return at_.fail(step.place, words + " goes on with " + to_text(kept.stream.flow) +
                                    ", which are no numbers; embed reads tokens: { embed = ..., "
                                    "of = '" +
                                    model_.kept[static_cast<std::size_t>(kept.number)].name +
                                    "' }");
  add_keeps(into);
  into.push_back(plain(std::make_unique<const TakeKept>(input)));
  current_ = kept.stream;
}

/// Checks that a step may go on with another value than the stream.
bool Expander::may_leave_stream(const Step& step, const std::string& words, Outermost outermost) {
  const std::string kind(step.kind->name);
  if (outermost == Outermost::no)
    at_.fail(step.place, words + " is inside of a residual or parallel; " +
                             (kind == "take" ? "a take" : "an embed of another value") +
                             " is one of the outermost steps of a part");
  else if (keeping_.empty())
    at_.fail(step.place, words + " would lose the stream; a keep comes right before " +
                             (kind == "take" ? "a take" : "it") + ", and a later step reads it");
  return !at_.fault;
}

/// Checks that the stream and a kept value have one shape, but for the width if they are put side
/// by side.
bool Expander::can_join(const Step& step, const std::string& words, const Kept& kept) {
  const Flow &own = current_.flow, &other = kept.stream.flow;
  const bool is_concat = step.kind->name == "concat";
  const Flow alike = is_concat ? with_width(other, own.width()) : other;
  const auto both = (is_concat ? "joins " : "adds ") + to_text(other) + ", " + origin_of(kept) +
                    ", " + (is_concat ? "and " : "to ") + to_text(own);
  const bool is_sized = std::ranges::none_of(own.shape, [](auto size) { return size == 0; });
  if (own.has_integers() || other.has_integers())
    fail_of_flow(step, words, both + "; tokens are no numbers to join", current_);
  else if (own.kind != other.kind || !(alike.shape == own.shape))
    fail_of_flow(step, words, both, current_);
  else if (!is_sized)
    fail_of_flow(step, words,
                 both + "; sizes of 0, any, may differ; give the input its height and width",
                 current_);
  return !at_.fault;
}

void Expander::check_kept() {
  for (const auto& [name, kept] : kept_) {
    if (kept.is_read) continue;
    at_.fail(kept.place, is_input(kept) ? "no step reads the input '" + name + "'"
                                        : "'" + name + "' is kept, and no later step reads it");
  }
  const int last = static_cast<int>(model_.units.size()) - 1;
  for (auto& kept : model_.kept) {  // Steps behind the last unit have joined it.
    kept.made = std::min(kept.made, last);
    kept.first = std::min(kept.first, last);
    kept.last = std::min(kept.last, last);
  }
}

}  // namespace troupe::models
