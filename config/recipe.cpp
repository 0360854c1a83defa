#include "config/recipe.h"

#include <algorithm>
#include <map>

#include "config/rate_changes.h"
#include "config/section/parameter_group.h"
#include "core/json.h"
#include "core/mixture.h"
#include "schedules/generators/registry.h"

namespace troupe::config {
namespace {

bool is_asynchronous(const Value& tree) {
  const auto& name = *value_at(tree, "pipeline.schedule")->text();
  if (name == "auto") return false;
  const auto* schedule = schedules::find_schedule(name);
  return !schedule || schedule->mode == schedules::Mode::asynchronous;
}

using Lines = std::vector<std::pair<std::string, std::string>>;

/// Uses JSON, in which a number that was stored as 1.0 and read back as 1 has one text.
void flatten(const Value& value, const std::string& name, Lines& lines) {
  if (const auto* map = value.map()) {
    for (const auto& entry : *map)
      flatten(entry.value, name.empty() ? entry.key : name + "." + entry.key, lines);
    return;
  }
  lines.emplace_back(name, to_json(value));
}

Lines lines_of(const Value& recipe) {
  Lines lines;
  flatten(recipe, "", lines);
  return lines;
}

/// Returns the digest of a description as JSON. Comments and the form of its text do not count.
Value digest_text(const Value& description) { return to_string(digest_of(to_json(description))); }

/// Returns a key's value in the form that recipes hold.
Value in_recipe(const Key& key, const Value& value) {
  switch (key.type) {
    case Type::description:
      return digest_text(value);
    case Type::groups:
      return section::canonical_groups(value);
    default:
      return value;
  }
}

/// Returns whether a value says no more than its absence.
bool is_empty(const Key& key, const Value& value) {
  if (key.type == Type::groups) return value.list()->empty();
  return key.is_later && to_json(value) == to_json(key.fallback);
}

}  // namespace

bool is_recipe(const Key& key, const Value& tree) {
  switch (key.half) {
    case Half::recipe:
      return key.section() != "staleness" || is_asynchronous(tree);
    case Half::plan:
      return false;
    case Half::shape:
      return is_asynchronous(tree);
  }
  return false;
}

Value recipe_of(const Value& tree) {
  Value recipe = Value::Map{};
  const auto schema = schema_for(tree);
  for (const auto& key : schema->keys()) {
    const Value* value = value_at(tree, key.name);
    if (value && schema->applies(key, tree) && is_recipe(key, tree) && !is_empty(key, *value))
      set_at(recipe, key.name, in_recipe(key, *value));
  }
  // Manifests name the order of the sums, so that checkpoints of every version compare.
  set_at(recipe, "parallel.reduction", "tree");
  const Value* total = value_at(recipe, "optimizer.schedule.total_steps");
  if (total && total->text())
    set_at(recipe, "optimizer.schedule.total_steps",
           *value_at(recipe, "optimizer.schedule.kind")->text() == "constant"
               ? Value(0)
               : *value_at(tree, "train.steps"));
  return recipe;
}

namespace {

void drop_later_rates(Value& recipe, std::int64_t step) {
  Value* optimizer = recipe.find("optimizer");
  const Value* told = optimizer ? optimizer->find("changes") : nullptr;
  auto changes = told && told->text() ? parse_rate_changes(*told->text())
                                      : Result<std::vector<models::LearningRate::Change>>(Error{});
  if (!changes) return;
  std::erase_if(*changes, [&](const auto& change) { return change.from >= step; });
  if (changes->empty())
    std::erase_if(*optimizer->map(), [](const auto& entry) { return entry.key == "changes"; });
  else
    optimizer->set("changes", to_text(*changes));
}

/// Mixtures that are equal get one text.
void drop_later_phases(Value& recipe, std::int64_t step) {
  Value* data = recipe.find("data");
  const Value* mix = data ? data->find("mix") : nullptr;
  if (!mix || !mix->text()) return;
  if (const auto mixture = Mixture::parse(*mix->text()))
    data->set("mix", mixture->until(step).text());
}

void drop_later_skips(Value& recipe, std::int64_t step) {
  Value* train = recipe.find("train");
  const Value* told = train ? train->find("skip_steps") : nullptr;
  if (!told || !told->list()) return;
  Value::List steps = *told->list();
  std::erase_if(steps, [step](const Value& one) { return one.integer() && *one.integer() > step; });
  const auto drop = [](Value& table, std::string_view key) {
    std::erase_if(*table.map(), [key](const auto& entry) { return entry.key == key; });
  };
  if (!steps.empty()) {
    train->set("skip_steps", std::move(steps));
    return;
  }
  drop(*train, "skip_steps");
  if (train->map()->empty()) drop(recipe, "train");
}

}  // namespace

Value recipe_until(Value recipe, std::int64_t step) {
  drop_later_rates(recipe, step);
  drop_later_phases(recipe, step);
  drop_later_skips(recipe, step);
  return recipe;
}

std::string recipe_text(const Value& recipe) {
  std::string text;
  for (const auto& [name, value] : lines_of(recipe)) text += name + " = " + value + "\n";
  return text;
}

Digest recipe_digest(const Value& recipe) { return digest_of(recipe_text(recipe)); }

std::vector<std::string> recipe_changes(const Value& now, const Value& before) {
  const Lines old_lines = lines_of(before);
  std::map<std::string, std::string> gone(old_lines.begin(), old_lines.end());
  std::vector<std::string> changes;
  for (const auto& [name, value] : lines_of(now)) {
    const auto old = gone.extract(name);
    if (old.empty())
      changes.push_back(name + " = " + value + ", was not there");
    else if (old.mapped() != value)
      changes.push_back(name + " = " + value + ", was " + old.mapped());
  }
  for (const auto& [name, value] : gone) changes.push_back(name + " is not there, was " + value);
  return changes;
}

}  // namespace troupe::config
