#include "apps/run/live_changes.h"

#include <string>
#include <string_view>

#include "config/rate_changes.h"
#include "config/run_config.h"
#include "config/schema.h"
#include "config/toml/toml.h"
#include "core/json.h"
#include "core/mixture.h"

namespace troupe::apps {
namespace {

constexpr std::string_view rates_key = "optimizer.changes";
constexpr std::string_view mix_key = "data.mix";
constexpr std::string_view skips_key = "train.skip_steps";

std::string path_of(const config::Loaded& loaded) {
  return "runs/" + loaded.config.name + "/changes.toml";
}

Status check_rates(const std::string& kept) {
  if (auto good = config::parse_rate_changes(kept); !good) return good.error();
  return Done{};
}

/// Returns whether two values of a key mean the same.
bool mean_the_same(std::string_view key, const std::string& one, const std::string& other) {
  if (key != mix_key) return one == other;
  const auto a = Mixture::parse(one), b = Mixture::parse(other);
  return a && b && *a == *b;
}

/// The data was opened as configured, so the kept mixture must have the same sources.
Status check_mix(const config::Loaded& loaded, const std::string& kept) {
  const auto mixture = Mixture::parse(kept);
  if (!mixture) return within(std::string(mix_key), mixture.error());
  const auto configured = Mixture::parse(loaded.config.data.mix.value_or(""));
  if (configured && configured->sources == mixture->sources) return Done{};
  return Error{std::string(mix_key) + " = \"" + kept +
               "\" was set while the run was under way, but the " +
               "configuration has other sources: " +
               (loaded.config.data.mix ? "\"" + *loaded.config.data.mix + "\"" : "data.train") +
               "; resume with the run's own data.mix"};
}

}  // namespace

Status keep_changes(storage::Files& files, const config::Loaded& loaded) {
  std::string changes;
  for (const auto key : {rates_key, mix_key, skips_key})
    if (const Value* change = config::value_at(loaded.tree, key); change && !change->is_null())
      changes += std::string(key) + " = " + config::to_toml(*change) + "\n";
  if (changes.empty()) return Done{};
  return storage::replace_file(
      files, path_of(loaded),
      "# What was set while the run was under way. It is resumed with this; do not change it.\n" +
          changes);
}

Result<std::vector<std::string>> take_changes(storage::Files& files, config::Loaded& loaded) {
  std::vector<std::string> lines;
  const std::string path = path_of(loaded);
  const auto there = files.exists(path);
  if (!there.ok()) return there.error();
  if (!*there) return lines;
  const auto bytes = files.read(path);
  if (!bytes) return bytes.error();
  const auto tree = config::parse_toml(bytes->text());
  if (!tree) return within(path, tree.error());
  bool has_some = false;
  for (const auto key : {rates_key, mix_key}) {
    const Value* change = config::value_at(*tree, key);
    if (!change || !change->text()) continue;
    if (auto good =
            key == mix_key ? check_mix(loaded, *change->text()) : check_rates(*change->text());
        !good)
      return within(path, good.error());
    const Value* configured = config::value_at(loaded.tree, key);
    if (configured && configured->text() && !configured->text()->empty() &&
        !mean_the_same(key, *configured->text(), *change->text()))
      lines.push_back(std::string(key) + " = \"" + *configured->text() +
                      "\" of the configuration does not count: \"" + *change->text() +
                      "\" was set while the run was under way (" + path +
                      "), and `troupe set` changes it further");
    config::set_at(loaded.tree, key, *change);
    has_some = true;
  }
  loaded.config = config::read_run_config(loaded.tree);
  if (const Value* steps = config::value_at(*tree, skips_key); steps && steps->list()) {
    for (const auto& step : *steps->list()) {
      if (!step.integer() || *step.integer() < 1)
        return Error{path + ": found " + to_json(step) + " in " + std::string(skips_key) +
                     ", wanted a step from 1 on"};
      loaded = config::leave_out_step(loaded, *step.integer());
    }
    has_some = true;
  }
  if (has_some) return lines;
  return Error{path +
               ": found no text optimizer.changes, no text data.mix and no list train.skip_steps; "
               "it was written by another program"};
}

}  // namespace troupe::apps
