#include "models/description/expand.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "models/description/divides.h"
#include "models/description/evaluation.h"
#include "models/description/inputs.h"
#include "models/layers/concat.h"
#include "models/layers/kept_steps.h"
#include "models/layers/lora.h"
#include "models/layers/losses/cross_entropy.h"
#include "models/layers/losses/element_loss.h"
#include "models/layers/parallel.h"
#include "models/layers/residual.h"
#include "models/layers/residual_stream.h"
#include "models/layers/scale.h"
#include "models/layers/sequence.h"

namespace troupe::models {
namespace {

using Layers = std::vector<BuiltLayer>;

/// The stream between two steps, and the step that made it.
struct Current {
  Flow flow;
  const Step* maker = nullptr;
  std::string maker_label;
};

LayerPtr layer_of(BuiltLayer built) {
  if (!built.branches.empty())
    return std::make_unique<const ResidualStream>(std::move(built.branches));
  if (built.norm) return std::move(built.norm);
  return std::move(built.layer);
}

LayerPtr sequence_of(Layers layers) {
  if (layers.size() == 1) return layer_of(std::move(layers.front()));
  std::vector<LayerPtr> all;
  for (auto& layer : layers) all.push_back(layer_of(std::move(layer)));
  return std::make_unique<const Sequence>(std::move(all));
}

BuiltLayer plain(LayerPtr layer) { return {.layer = std::move(layer), .norm = {}, .branches = {}}; }

/// Adds a residual. One that begins with a norm of rows joins the residual stream before it.
void add_residual(Layers inner, Layers shortcut, Layers& into) {
  if (inner.size() < 2 || !inner.front().norm || !shortcut.empty()) {
    LayerPtr added = shortcut.empty() ? nullptr : sequence_of(std::move(shortcut));
    into.push_back(
        plain(std::make_unique<const Residual>(sequence_of(std::move(inner)), std::move(added))));
    return;
  }
  ResidualStream::Branch branch{.norm = std::move(inner.front().norm), .inner = nullptr};
  inner.erase(inner.begin());
  branch.inner = sequence_of(std::move(inner));
  if (into.empty() || into.back().branches.empty()) into.emplace_back();
  into.back().branches.push_back(std::move(branch));
}

class Expander {
 public:
  Expander(const Description& description, const Value& options)
      : description_(description), options_(options) {}

  std::variant<Model, Fault> run() {
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

 private:
  void check_options() {
    for (const auto& rule : description_.divides) {
      if (at_.fault || (rule.when && !at_.truth(*rule.when))) continue;
      if (auto good = check_divides(named(rule.small), named(rule.large)); !good)
        at_.fail({}, good.error().text);
    }
    for (const auto& rule : description_.require)
      if (!at_.fault && !at_.truth(rule.holds) && !at_.fault)
        at_.fail({}, at_.text(rule.why, "the reason"));
  }

  NamedInteger named(const std::string& name) const {
    const Value* value = at_.names.find(name);
    return {name, value && value->integer() ? *value->integer() : 1};
  }

  void read_inputs() {
    for (const auto& input : description_.inputs) {
      const bool is_first = &input == &description_.inputs.front();
      if (input.when && !at_.truth(*input.when)) continue;
      const Flow flow =
          flow_of_input(input, is_first ? InputPlace::first : InputPlace::behind, at_);
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
  void read_lora() {
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
  void freeze_base() {
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

  // Parts and units.

  void add_part(const Part& part) { repeat(part, 0); }

  /// Defines the variables of a part's repetition from the given one on, and adds each repetition.
  void repeat(const Part& part, std::size_t variable) {
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

  void add_repetition(const Part& part) {
    count_step(part.place);
    set_given();
    const auto names = at_.names.count();
    at_.let(part.let);
    part_name_ = part.name ? at_.text(*part.name, "the name of a part") : std::string();
    if (part.name && !at_.fault && !is_parameter_name(part_name_))
      at_.fail(part.name->place, "the name of a part has at most 256 letters, digits and ._-/:");
    const bool is_unit = part.is_own_unit || !part.repeat.empty();
    add_steps(part.body, unit_, Outermost::yes, part);
    if (is_unit) {
      end_unit(part);
      is_behind_cut_ = false;
    }
    at_.names.keep(names);
  }

  void end_unit(const Part& part) {
    if (at_.fault || unit_.empty()) return;
    if (model_.units.size() >= bounds::units)
      return at_.fail(part.place,
                      "a model has at most " + std::to_string(bounds::units) + " units");
    model_.units.push_back({unit_name(), sequence_of(std::exchange(unit_, {}))});
  }

  std::string unit_name() {
    const auto& base = part_name_.empty() ? description_.name : part_name_;
    const int uses = ++unit_names_[base];
    return uses == 1 ? base : base + "/" + std::to_string(uses);
  }

  // Steps.

  enum class Outermost { yes, no };

  void add_steps(const std::vector<Step>& steps, Layers& into, Outermost outermost,
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
  static bool makes_output(const StepKind& kind) {
    return !kind.is_cut() && kind.name != "dropout";
  }

  void add_layers(const Step& step, Layers& into, Outermost outermost, const Part& part) {
    if (!step.kind->is_residual() && !step.kind->is_parallel())
      return add_step(step, outermost, into);
    if (outermost == Outermost::yes) add_keeps(into);
    if (step.kind->is_residual())
      add_residual_step(step, into, part);
    else
      add_parallel_step(step, into, part);
  }

  void count_step(const Place& place) {
    if (++steps_ > bounds::steps)
      at_.fail(place, "a model has at most " + std::to_string(bounds::steps) + " steps");
  }

  /// Each expert counts as a step: it has parameters of its own.
  void count_experts(const Step& step, std::int64_t count) {
    steps_ += count;
    if (steps_ > bounds::steps)
      at_.fail(step.place, "a model has at most " + std::to_string(bounds::steps) +
                               " steps, and each expert counts as one");
  }

  void set_given() {
    const auto width = current_.flow.width();
    at_.names.set_given(width > 0 ? Value(width) : Value());
  }

  void cut(const Step& step, Outermost outermost, const Part& part) {
    if (outermost == Outermost::no)
      return at_.fail(step.place, "a cut is one of the outermost steps of a part");
    end_unit(part);
    is_behind_cut_ = true;
  }

  // Kept values.

  struct Kept {
    Current stream;
    Place place;
    int number = 0;
    bool is_read = false;
  };

  std::string kept_name(const Step& step) {
    const auto name = at_.text(*step.name, "the name of a kept value");
    if (!at_.fault && !is_parameter_name(name))
      at_.fail(step.name->place, "the name of a kept value has 1 to 256 letters, digits and ._-/:");
    return name;
  }

  /// The layer that keeps begins the next unit if a unit ends here: so the value does not cross the
  /// cut besides the stream.
  void keep(const Step& step, Outermost outermost, const Layers& into) {
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
      return at_.fail(step.place, "'" + name + "' is " + origin_of(known->second) +
                                      " already; use another name");
    const bool is_tokens = current_.flow.kind == Flow::Kind::tokens;
    model_.kept.push_back({.name = name,
                           .type = is_tokens ? DType::i32 : DType::f32,
                           .has_gradient = !is_tokens && !is_input,
                           .bounds = {.below = current_.flow.below}});
    keeping_.push_back(number);
  }

  bool is_input(const Kept& kept) const {
    return model_.kept[static_cast<std::size_t>(kept.number)].is_input();
  }

  /// Returns "kept at 5:19", or "an input at 3:1".
  std::string origin_of(const Kept& kept) const {
    return (is_input(kept) ? "an input at " : "kept at ") + to_text(kept.place);
  }

  /// Notes that the unit in the making reads a value.
  KeptValue& note_reader(Kept& kept) {
    auto& value = model_.kept[static_cast<std::size_t>(kept.number)];
    value.last = static_cast<int>(model_.units.size());
    if (!std::exchange(kept.is_read, true)) value.first = value.last;
    return value;
  }

  /// Finds the values that options of a step name.
  void read_values(const Step& step, const std::string& words, StepOptions& options) {
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
  void add_keeps(Layers& into) {
    for (const int number : std::exchange(keeping_, {})) {
      model_.kept[static_cast<std::size_t>(number)].made = static_cast<int>(model_.units.size());
      into.push_back(plain(std::make_unique<const KeepStream>(number)));
    }
  }

  void read_kept(const Step& step, Outermost outermost, Layers& into) {
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

  void take(const std::string& words, const Step& step, Outermost outermost, const Kept& kept,
            const KeptInput& input, Layers& into) {
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
  bool may_leave_stream(const Step& step, const std::string& words, Outermost outermost) {
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
  bool can_join(const Step& step, const std::string& words, const Kept& kept) {
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

  void check_kept() {
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

  void add_residual_step(const Step& step, Layers& into, const Part& part) {
    const Current before = current_;
    Layers inner, shortcut;
    add_steps(step.steps, inner, Outermost::no, part);
    const Current after = std::exchange(current_, before);
    add_steps(step.shortcut, shortcut, Outermost::no, part);
    if (at_.fault) return;
    if (inner.empty()) return at_.fail(step.place, "a residual has at least one step");
    const Current added = std::exchange(current_, after);
    if (after.flow.kind != added.flow.kind || !(after.flow.shape == added.flow.shape))
      return fail_of_flow(step, label(step, ""),
                          "adds " + to_text(after.flow) + " to " + to_text(added.flow), after);
    add_residual(std::move(inner), std::move(shortcut), into);
  }

  void add_parallel_step(const Step& step, Layers& into, const Part& part) {
    const Current before = current_;
    const bool is_concat = at_.options_of(step).text("join") == "concat";
    std::vector<Concat::Branch> branches;
    std::optional<Current> first;
    std::int64_t width = 0;  // The sum over the branches.
    for (const auto& steps : step.branches) {
      current_ = before;
      Layers inner;
      add_steps(steps, inner, Outermost::no, part);
      if (at_.fault) return;
      if (inner.empty()) return at_.fail(step.place, "a branch has at least one step");
      const std::int64_t own_width = current_.flow.width();
      branches.push_back({sequence_of(std::move(inner)), own_width});
      width += own_width;
      if (!first) first = current_;
      Flow alike = current_.flow;
      if (is_concat) alike = with_width(alike, first->flow.width());
      if (alike.kind != first->flow.kind || !(alike.shape == first->flow.shape))
        return fail_of_flow(step, label(step, ""),
                            std::string(is_concat ? "joins " : "adds ") + to_text(current_.flow) +
                                " to " + to_text(first->flow),
                            current_);
    }
    current_ = *first;
    if (is_concat) return add_concat(step, std::move(branches), width, into);
    std::vector<LayerPtr> layers;
    for (auto& branch : branches) layers.push_back(std::move(branch.layer));
    into.push_back(plain(std::make_unique<const Parallel>(std::move(layers))));
  }

  static Flow with_width(Flow flow, std::int64_t width) {
    if (flow.has_integers()) return flow;
    const int changed = flow.kind == Flow::Kind::images ? 0 : flow.shape.rank() - 1;
    const Shape before = std::exchange(flow.shape, {});
    for (int i = 0; i < before.rank(); ++i) flow.shape.append(i == changed ? width : before[i]);
    return flow;
  }

  /// Joins branches whose first one made the current stream.
  void add_concat(const Step& step, std::vector<Concat::Branch> branches, std::int64_t width,
                  Layers& into) {
    const auto along =
        current_.flow.kind == Flow::Kind::images ? Concat::Along::channels : Concat::Along::last;
    current_ = {with_width(current_.flow, width), &step, label(step, "") + variables_text()};
    check_size(current_.flow.shape, step.place, "the result of parallel");
    into.push_back(plain(std::make_unique<const Concat>(along, std::move(branches))));
  }

  void add_step(const Step& step, Outermost outermost, Layers& into) {
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

  // Errors.

  static std::string label(const Step& step, const std::string& name) {
    return std::string(step.kind->name) + (name.empty() ? "" : " '" + name + "'");
  }

  std::string variables_text() const {
    std::string text;
    for (const auto& variable : variables_) text += ", " + variable;
    return text;
  }

  void fail_of_flow(const Step& step, const std::string& words, const std::string& what,
                    const Current& stream) {
    at_.fail(step.place, words + " " + what);
    if (!stream.maker) return;
    at_.fault->made_at = stream.maker->place;
    at_.fault->maker = stream.maker_label;
  }

  void check_size(const Shape& shape, const Place& place, const std::string& what) {
    std::int64_t count = 1;
    bool overflows = false;
    for (const auto size : shape)
      overflows |= __builtin_mul_overflow(count, std::max<std::int64_t>(size, 1), &count);
    if (overflows || count > bounds::numbers)
      at_.fail(place, what + " has more than 2^48 numbers: " + to_string(shape));
  }

  /// Parameters are shared by their names. All who declare one must mean the same one.
  void check_parameters(const Step& step, const BuiltLayer& layer, const std::string& relative) {
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

  struct Declared {
    Parameter parameter;
    Place place;
    bool may_share = false;
  };

  static Parameter layer_parameter(const BuiltLayer& layer, const std::string& name) {
    const auto all = layer.parameters();
    return *std::ranges::find(all, name, &Parameter::name);
  }

  void check_shared(const Step& step, const Declared& first, const Parameter& again,
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

  // The end.

  void finish() {
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

  void fail_of_output(const Place& place, const std::string& taken) {
    at_.fail(place, "the loss takes " + taken + " and gets " + to_text(current_.flow));
    if (!current_.maker) return;
    at_.fault->made_at = current_.maker->place;
    at_.fault->maker = current_.maker_label;
  }

  void end_in_classes() {
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
  void copy_held_output() {
    const auto kind = last_step_ ? last_step_->kind->name : "";
    if (kind != "relu" && kind != "take") return;
    auto& last = model_.units.back().layer;
    Layers both;
    both.push_back(plain(std::move(last)));
    both.push_back(plain(std::make_unique<const Scale>(1.0f)));
    last = sequence_of(std::move(both));
  }

  /// Ends in a loss of each number of the output.
  void end_in_numbers(kernels::ElementLoss loss) {
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

  kernels::CrossEntropyForm loss_form() {
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

  /// Returns an option of the loss, if the configuration or else the description gives it.
  template <class IsGood>
  std::optional<Value> loss_option(const std::string& key,
                                   const std::optional<PlacedFormula>& described, IsGood is_good,
                                   const std::string& wanted) {
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

  /// Data give each token the next one as its target, so a model of tokens alone predicts tokens.
  bool predicts_tokens(std::int64_t classes) {
    if (!(model_.sample.target == model_.sample.input))
      at_.fail(description_.loss.classes->place, "the loss takes a row for each of the tokens " +
                                                     to_string(model_.sample.input) + " and gets " +
                                                     to_text(current_.flow));
    else if (model_.sample.bounds.below != classes)
      at_.fail(description_.loss.classes->place,
               "tokens are below " + std::to_string(model_.sample.bounds.below) +
                   ", and the loss has " + std::to_string(classes) +
                   " classes; both are the size of the vocabulary");
    return !at_.fault;
  }

  /// Adds the layers behind the last unit to it, or makes a unit of them if a cut is before them.
  void end_last() {
    if (model_.units.empty() || is_behind_cut_) return end_unit(description_.parts.back());
    auto& last = model_.units.back().layer;
    Layers both;
    both.push_back(plain(std::move(last)));
    for (auto& layer : unit_) both.push_back(std::move(layer));
    last = sequence_of(std::move(both));
    unit_.clear();
  }

  const Description& description_;
  const Value& options_;
  Evaluation at_;
  Model model_;
  Current current_;
  const Step* last_step_ = nullptr;  // The last outermost one.
  Layers unit_;                      // Layers of the unit that is being made.
  bool is_behind_cut_ = false;       // Whether the layers of unit_ follow a cut.
  std::string part_name_;
  std::vector<std::string> variables_;  // "i = 2"
  std::map<std::string, int> unit_names_;
  std::map<std::string, Declared> parameters_;
  std::map<std::string, Kept> kept_;
  std::vector<int> keeping_;  // Kept values that wait for the layer behind them.
  std::int64_t steps_ = 0;
  std::uint32_t draws_ = 0;
  std::optional<Lora> lora_;
};

}  // namespace

std::variant<Model, Fault> expand(const Description& description, const Value& options) {
  return Expander(description, options).run();
}

}  // namespace troupe::models
