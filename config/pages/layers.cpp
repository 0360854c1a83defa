#include <string>

#include "config/pages/markdown.h"
#include "config/pages/render.h"
#include "config/toml/toml.h"
#include "core/text.h"
#include "models/description/step_kind.h"

namespace troupe::config {
namespace {

using models::StepKind;
using models::StepOption;

constexpr std::string_view introduction =
    R"(<!-- Written by `troupe model layers`; do not edit. -->

# Steps of a model description

A description lists the steps of a model: see
[bring your own model](../how-to/bring-your-own-model.md). A step takes what the step before it
made, and makes something of it. `when`, a condition, may stand in every step that is a table.
`{ when = ..., do = [...] }` groups steps.

Behind the last step comes the loss: `cross_entropy` over classes, or `binary` or `squared`, whose
[targets are numbers](../how-to/bring-your-own-model.md#numbers-as-targets).

A name is that of the step's parameters. The name of the part and a dot come before it, unless it
begins with `/`; `"."` is the name of the part itself. Two steps `embed` or `linear` with the same
name share their weights. The name of a kept value (`keep`, `take`, `add`, `concat`) is one of the
whole model: no part's name comes before it.

A number or a boolean may be written as a text, which is an expression: `"4 * width"`. In other
texts an expression stands in braces: `"h.{i}"`. Expressions have these parts, which bind as in
Python:

| | |
|---|---|
| numbers, texts, truth | `12` `0.5` `'text'` `true` `false` `none` (not given) |
| names | options, values of `let`, variables of `repeat`, `given` (the width or channels of the stream) |
| arithmetic | `+` `-` `*` `/` `//` (rounded down) `%` `**`, on integers of 64 bits and numbers |
| comparison, logic | `==` `!=` `<` `<=` `>` `>=` `and` `or` `not` |
| lists | `x[i]`, `count(x)`; `x[-1]` is the last |
| functions | `if(condition, then, else)` `min(...)` `max(...)` `sqrt(x)` `ceil_to(x, step)` |
)";

std::string form_of(const StepKind& kind) {
  const std::string name(kind.name);
  switch (kind.head) {
    case StepKind::Head::name:
      return "{ " + name + " = \"NAME\"" + (kind.options.empty() ? "" : ", ...") + " }";
    case StepKind::Head::option:
      return "{ " + name + " = " + std::string(kind.options.front().name) + " }";
    case StepKind::Head::steps:
      return "{ " + name + " = [steps], ... }";
    case StepKind::Head::branches:
      return "{ " + name + " = [[steps], [steps], ...] }";
    case StepKind::Head::kept:
      return "{ " + name + " = \"NAME\" }";
    case StepKind::Head::nothing:
      return "\"" + name + "\"";
  }
  return {};
}

std::string fallback_of(const StepOption& option) {
  if (option.presence == StepOption::Presence::required) return "required";
  return option.fallback.is_null() ? "none" : "`" + to_toml(option.fallback) + "`";
}

}  // namespace

std::string layers_page() {
  std::string out(introduction);
  for (const auto& kind : models::step_kinds()) {
    out += "\n## " + std::string(kind.name) + "\n\n";
    out += wrapped(kind.help, 100, 0) + "\n\n    " + form_of(kind) + "\n";
    if (kind.options.empty()) continue;
    out += "\n| option | value | default | meaning |\n|---|---|---|---|\n";
    for (const auto& option : kind.options)
      out += "| `" + std::string(option.name) + "` | " + cell(models::wanted(option)) + " | " +
             cell(fallback_of(option)) + " | " + cell(option.help) + " |\n";
  }
  return out;
}

}  // namespace troupe::config
