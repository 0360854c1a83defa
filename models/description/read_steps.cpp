#include "models/description/read_steps.h"

#include <algorithm>
#include <utility>

#include "core/text.h"
#include "models/description/read_options.h"

namespace troupe::models {
namespace {

constexpr std::size_t longest_shown = 60;

using Type = StepOption::Type;

std::string quoted(std::string_view word) {
  return "'" + std::string(word.substr(0, longest_shown)) + "'";
}

Formula::Texts texts_of(Type type) {
  switch (type) {
    case Type::choice:
    case Type::text:
    case Type::texts:
    case Type::value:
      return Formula::Texts::templates;
    case Type::init:
      return Formula::Texts::inits;
    default:
      return Formula::Texts::expressions;
  }
}

std::vector<std::string_view> kind_names() {
  std::vector<std::string_view> names;
  for (const auto& kind : step_kinds()) names.push_back(kind.name);
  return names;
}

std::string joined(const std::vector<std::string_view>& words) {
  std::string text;
  for (const auto word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

/// Returns the names of the options that a step's table may have.
std::vector<std::string_view> option_names(const StepKind& kind) {
  std::vector<std::string_view> names;
  for (const auto& option : kind.options) names.push_back(option.name);
  const bool head_is_first = kind.head == StepKind::Head::option ||
                             kind.head == StepKind::Head::steps ||
                             kind.head == StepKind::Head::branches;
  if (head_is_first) names.erase(names.begin());
  return names;
}

std::string unknown_option(const StepKind& kind, const std::string& key) {
  auto names = option_names(kind);
  names.push_back("when");
  const auto near = nearest(key.substr(0, longest_shown), names);
  return std::string(kind.name) + " has no option " + quoted(key) +
         (near.empty() ? "" : "; did you mean " + quoted(near) + "?") + "; it has " + joined(names);
}

std::size_t row_of(const StepKind& kind, std::string_view name) {
  const auto row = std::ranges::find(kind.options, name, &StepOption::name);
  return static_cast<std::size_t>(row - kind.options.begin());
}

class StepReader {
 public:
  StepReader(const Defaults& defaults, FaultSink& sink) : defaults_(defaults), sink_(sink) {}

  Step read(const Value& value, const std::string& path) {
    Step step;
    step.place = {value.position, path};
    if (const auto* word = value.text())
      read_bare(*word, step);
    else if (!value.map())
      fail(step,
           "a step is a name such as \"relu\", or a table such as { linear = \"head\", out = 10 }");
    else if (value.find("do"))
      read_group(value, step);
    else
      read_table(value, step);
    return step;
  }

 private:
  void fail(const Step& step, std::string what) {
    if (!sink_.fault) sink_.fault = Fault{.at = step.place, .message = std::move(what)};
  }

  void read_bare(const std::string& word, Step& step) {
    step.kind = find_step_kind(word);
    if (!step.kind) return fail(step, unknown_kind(word));
    if (step.kind->head != StepKind::Head::nothing)
      return fail(step, std::string(word) + " is written as a table: { " + word + " = ... }");
    step.options = defaults_.of(*step.kind);
  }

  static std::string unknown_kind(const std::string& word) {
    const auto names = kind_names();
    const auto near = nearest(word.substr(0, longest_shown), names);
    return quoted(word) + " is no kind of step of this program" +
           (near.empty() ? "" : "; did you mean " + quoted(near) + "?") + "; there are " +
           joined(names);
  }

  void read_group(const Value& value, Step& step) {
    sink_.check_keys(value, step.place.path, {"when", "do"});
    read_when(value, step);
    step.steps = read_steps(*value.find("do"), step.place.path + ".do", defaults_, sink_);
  }

  void read_when(const Value& value, Step& step) {
    if (const Value* when = value.find("when"))
      step.when = sink_.parse(*when, step.place.path + ".when", Formula::Texts::expressions);
  }

  void read_table(const Value& value, Step& step) {
    for (const auto& entry : *value.map()) {
      const auto* kind = find_step_kind(entry.key);
      if (kind && step.kind)
        return fail(step, "a step has one kind, and this one has " + quoted(step.kind->name) +
                              " and " + quoted(kind->name));
      if (kind) step.kind = kind;
    }
    if (!step.kind) {
      if (value.map()->empty()) return fail(step, "an empty table is no step");
      return fail(step, unknown_kind(value.map()->front().key));
    }
    step.options = defaults_.of(*step.kind);
    read_when(value, step);
    for (const auto& entry : *value.map()) {
      if (sink_.fault || entry.key == "when") continue;
      if (entry.key == step.kind->name)
        read_head(entry.value, step);
      else
        read_option(entry, step);
    }
  }

  void read_head(const Value& value, Step& step) {
    const auto path = step.place.path + "." + std::string(step.kind->name);
    switch (step.kind->head) {
      case StepKind::Head::name:
        if (!value.text())
          return fail(step, std::string(step.kind->name) + " takes the name of its parameters");
        step.name = sink_.parse(value, path, Formula::Texts::templates);
        break;
      case StepKind::Head::kept:
        if (!value.text())
          return fail(step, std::string(step.kind->name) + " takes the name of a kept value");
        step.name = sink_.parse(value, path, Formula::Texts::templates);
        break;
      case StepKind::Head::option:
        set(step, 0, value, path);
        break;
      case StepKind::Head::steps:
        step.steps = read_steps(value, path, defaults_, sink_);
        break;
      case StepKind::Head::branches:
        read_branches(value, step, path);
        break;
      case StepKind::Head::nothing:
        if (!value.boolean() || !*value.boolean())
          return fail(step, std::string(step.kind->name) + " is written as \"" +
                                std::string(step.kind->name) + "\", or as { " +
                                std::string(step.kind->name) + " = true }");
        break;
    }
  }

  void read_branches(const Value& value, Step& step, const std::string& path) {
    const auto* branches = value.list();
    if (!branches || branches->size() < 2)
      return fail(step, std::string(step.kind->name) + " takes two lists of steps or more: { " +
                            std::string(step.kind->name) + " = [[...], [...]] }");
    for (std::size_t i = 0; i < branches->size(); ++i)
      step.branches.push_back(
          read_steps((*branches)[i], path + "[" + std::to_string(i) + "]", defaults_, sink_));
  }

  void read_option(const Value::Entry& entry, Step& step) {
    const auto names = option_names(*step.kind);
    const auto path = step.place.path + "." + entry.key;
    if (std::ranges::count(names, entry.key) == 0)
      return sink_.fail(entry.value, path, unknown_option(*step.kind, entry.key));
    const auto row = row_of(*step.kind, entry.key);
    if (step.kind->options[row].type == Type::steps)
      step.shortcut = read_steps(entry.value, path, defaults_, sink_);
    else
      set(step, row, entry.value, path);
  }

  void set(Step& step, std::size_t row, const Value& value, const std::string& path) {
    const auto texts = texts_of(step.kind->options[row].type);
    step.options[row] = std::make_shared<const PlacedFormula>(sink_.parse(value, path, texts));
  }

  const Defaults& defaults_;
  FaultSink& sink_;
};

}  // namespace

void FaultSink::fail(const Value& at, std::string path, std::string what) {
  if (!fault) fault = Fault{.at = {at.position, std::move(path)}, .message = std::move(what)};
}

void FaultSink::check_keys(const Value& table, const std::string& path,
                           const std::vector<std::string_view>& keys) {
  for (const auto& entry : *table.map()) {
    if (std::ranges::count(keys, entry.key) > 0) continue;
    const auto near = nearest(entry.key.substr(0, longest_shown), keys);
    return fail(entry.value, (path.empty() ? "" : path + ".") + entry.key.substr(0, longest_shown),
                "no description has a key " + quoted(entry.key) + " here" +
                    (near.empty() ? "" : "; did you mean " + quoted(near) + "?") + "; there are " +
                    joined(keys));
  }
}

PlacedFormula FaultSink::parse(const Value& value, const std::string& path, Formula::Texts texts) {
  PlacedFormula placed{.formula = {}, .place = {value.position, path}};
  if (fault) return placed;
  auto formula = Formula::parse(value, texts);
  if (formula)
    placed.formula = *std::move(formula);
  else
    fail(value, path, formula.error().text);
  return placed;
}

void FaultSink::read_let(const Value* let, const std::string& path,
                         std::vector<NamedFormula>& into) {
  if (!let || fault) return;
  if (const auto* list = let->list()) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      const auto item = path + "[" + std::to_string(i) + "]";
      if (!(*list)[i].map())
        return fail((*list)[i], item, "a table of named values is wanted here");
      read_let(&(*list)[i], item, into);
    }
    return;
  }
  if (!let->map()) return fail(*let, path, "a table of named values is wanted here");
  for (const auto& entry : *let->map()) {
    const auto item = path + "." + entry.key.substr(0, longest_shown);
    if (!is_name(entry.key))
      return fail(entry.value, item,
                  quoted(entry.key) +
                      " cannot be a name; use a lower-case word that has no other "
                      "meaning");
    into.push_back({entry.key, parse(entry.value, item, Formula::Texts::expressions)});
  }
}

Defaults::Defaults(const Value* every, FaultSink& sink) {
  for (const auto& kind : step_kinds()) by_kind_[kind.name].resize(kind.options.size());
  if (!every) return;
  if (!every->map()) {
    sink.fail(*every, "every", "every is a table of tables");
    return;
  }
  take_any(every->find("any"), sink);
  for (const auto& entry : *every->map())
    if (entry.key != "any") take_kind(entry, sink);
}

void Defaults::take_any(const Value* any, FaultSink& sink) {
  if (!any) return;
  if (!any->map()) return sink.fail(*any, "every.any", "a table of options is wanted here");
  for (const auto& entry : *any->map()) {
    const bool known = std::ranges::any_of(step_kinds(), [&](const StepKind& kind) {
      return std::ranges::count(option_names(kind), entry.key) > 0;
    });
    if (!known)
      return sink.fail(entry.value, "every.any",
                       "no kind of step has an option " + quoted(entry.key));
  }
  for (const auto& kind : step_kinds()) take(*any, "every.any", kind, sink);
}

void Defaults::take_kind(const Value::Entry& entry, FaultSink& sink) {
  const auto path = "every." + entry.key.substr(0, longest_shown);
  const auto* kind = find_step_kind(entry.key);
  if (!kind)
    return sink.fail(entry.value, path,
                     quoted(entry.key) + " is no kind of step; there are " + joined(kind_names()));
  if (!entry.value.map()) return sink.fail(entry.value, path, "a table of options is wanted here");
  for (const auto& option : *entry.value.map())
    if (std::ranges::count(option_names(*kind), option.key) == 0)
      return sink.fail(option.value, path, unknown_option(*kind, option.key));
  take(entry.value, path, *kind, sink);
}

void Defaults::take(const Value& table, const std::string& path, const StepKind& kind,
                    FaultSink& sink) {
  const auto names = option_names(kind);
  for (const auto& entry : *table.map()) {
    if (std::ranges::count(names, entry.key) == 0) continue;
    const auto row = row_of(kind, entry.key);
    if (kind.options[row].type == Type::steps)
      return sink.fail(entry.value, path, "steps have no defaults");
    by_kind_[kind.name][row] = std::make_shared<const PlacedFormula>(
        sink.parse(entry.value, path + "." + entry.key, texts_of(kind.options[row].type)));
  }
}

const std::vector<std::shared_ptr<const PlacedFormula>>& Defaults::of(const StepKind& kind) const {
  return by_kind_.find(kind.name)->second;
}

std::vector<Step> read_steps(const Value& list, const std::string& path, const Defaults& defaults,
                             FaultSink& sink) {
  std::vector<Step> steps;
  if (sink.fault) return steps;
  if (!list.list()) {
    sink.fail(list, path, "a list of steps is wanted here");
    return steps;
  }
  for (std::size_t i = 0; i < list.list()->size() && !sink.fault; ++i)
    steps.push_back(
        StepReader(defaults, sink).read((*list.list())[i], path + "[" + std::to_string(i) + "]"));
  return steps;
}

}  // namespace troupe::models
