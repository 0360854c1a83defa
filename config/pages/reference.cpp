#include <algorithm>

#include "config/keys.h"
#include "config/model_kinds.h"
#include "config/pages/markdown.h"
#include "config/pages/render.h"
#include "config/schema.h"
#include "config/toml/toml.h"

namespace troupe::config {
namespace {

constexpr std::string_view introduction =
    R"(<!-- Written by `troupe config schema --format markdown`; do not edit. -->

# Configuration

A run is described by one table of keys. A file holds it as TOML, or as JSON if its name ends in
`.json`. `-` reads JSON from standard input. A `run.submit` message carries the table as its body.

Values come from these sources; a later one overrides an earlier one:

1. defaults
2. the files that `extends` names (relative to the file that contains it)
3. the file itself
4. each `--set key=value`, in order
5. `run.set` while the run is active, for keys marked *live*

Tables are merged key by key; lists are replaced.

The column *affects* says what a key can change:

- *results*: what is computed. These keys form the *recipe*.
- *operation*: where, when and how fast the run computes, but no number. These keys form the *plan*.
- *depends on schedule*: operation with a synchronous schedule, results with an asynchronous one.

Values carry units: durations `"250ms"`, `"5m"`, `"24h"`; sizes `"512MiB"`, `"2GiB"`; intervals
`"100 steps"` or a duration.
)";

std::string fallback(const Key& key) {
  if (key.presence == Key::Presence::required) return "required";
  return key.fallback.is_null() ? "none" : "`" + to_toml(key.fallback) + "`";
}

std::string affects(const Key& key) {
  const std::string_view live = key.change == Change::live ? ", live" : "";
  switch (key.half) {
    case Half::recipe:
      return "results" + std::string(live);
    case Half::plan:
      return "operation" + std::string(live);
    case Half::shape:
      return "depends on schedule" + std::string(live);
  }
  return {};
}

void append_table(std::string& out, const std::vector<const Key*>& keys) {
  out += "| key | value | default | affects | meaning |\n|---|---|---|---|---|\n";
  for (const auto* key : keys)
    out += "| `" + std::string(key->leaf()) + "` | " + cell(wanted(*key)) + " | " +
           cell(fallback(*key)) + " | " + affects(*key) + " | " + cell(key->help) + " |\n";
}

/// Appends a table for the keys that always exist, then one for those that need a value of another
/// key of the section, such as `kind`.
void append_section(std::string& out, const Section& section) {
  out += section.name.empty() ? "\n## Top level\n\n"
                              : "\n## `[" + std::string(section.name) + "]`\n\n";
  out += std::string(section.help) + "\n\n";
  std::vector<const Key*> common;
  std::vector<std::string_view> kinds;
  std::string_view decider;
  for (const auto& key : schema().keys()) {
    if (key.section() != section.name) continue;
    if (key.when.key.empty()) {
      common.push_back(&key);
    } else {
      kinds = schema().rows(key.when.key).front()->choices;
      decider = key.when.key.substr(key.when.key.rfind('.') + 1);
    }
  }
  append_table(out, common);
  for (const auto kind : kinds) {
    std::vector<const Key*> own;
    for (const auto& key : schema().keys()) {
      const auto& values = key.when.values;
      if (key.section() == section.name &&
          std::find(values.begin(), values.end(), kind) != values.end())
        own.push_back(&key);
    }
    if (own.empty()) continue;
    out += "\nWith `" + std::string(decider) + " = \"" + std::string(kind) + "\"`";
    const auto* model = section.name == "model" ? find_model_kind(kind) : nullptr;
    out += model ? ":\n" + model->help() + "\n\n" : ":\n\n";
    append_table(out, own);
  }
}

void append_presets(std::string& out) {
  out +=
      "\nWhat `staleness.preset` sets:\n\n| preset | predict | linearize_at | gap_penalty |\n"
      "|---|---|---|---|\n";
  for (const auto& preset : presets()) {
    out += "| `" + std::string(preset.name) + "` | " + std::string(preset.predict) + " | " +
           std::string(preset.linearize_at) + " | " + std::string(preset.gap_penalty);
    out += preset.recompute == Preset::Recompute::needed ? ", `pipeline.recompute` |\n" : " |\n";
  }
}

}  // namespace

std::string reference_page() {
  std::string out(introduction);
  for (const auto& section : sections()) {
    append_section(out, section);
    if (section.name == "staleness") append_presets(out);
  }
  return out;
}

}  // namespace troupe::config
