#include "config/load.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "config/agreement.h"
#include "config/huggingface/model_folder.h"
#include "config/model_kinds.h"
#include "config/own_model.h"
#include "config/rate_changes.h"
#include "config/recipe.h"
#include "config/run_config.h"
#include "config/schema.h"
#include "config/validate.h"
#include "core/mixture.h"

namespace troupe::config {
namespace {

/// Returns a run's default name: its file's name without characters that a name must not have.
std::string name_from(const std::string& path) {
  std::string name = path == "-" ? "" : std::filesystem::path(path).stem().string();
  for (char& c : name) {
    const bool legal = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '-' || c == '_';
    if (!legal) c = '-';
  }
  name = name.substr(0, 64);
  return name.empty() || name.front() == '.' ? "run" : name;
}

/// If model.kind is a preset, puts the name of its kind there, and adds the preset's options that
/// the document does not state.
void read_preset(Document& document) {
  Value* model = document.tree.find("model");
  Value* name = model && model->map() ? model->find("kind") : nullptr;
  if (!name || !name->text() || model->find("description")) return;
  const auto found = find_preset(*name->text());
  if (!found) return;
  const Position position = name->position;
  *name = found.kind->name();
  name->position = position;
  for (const auto& [key, value, at] : *found.preset->options.map()) {
    if (model->find(key)) continue;
    Value given = value;
    put_everything_at(position, given);
    model->set(key, std::move(given));
  }
}

Result<Loaded> check(Document document, Diagnostics& found, const std::string& fallback_name) {
  const auto failed = [&] { return Error{found.render(document.sources)}; };
  if (!document.whole) return failed();
  read_preset(document);
  check_description(document.tree, document.sources, found);
  if (!found.ok()) return failed();
  if (!document.tree.find("name")) document.tree.set("name", fallback_name);

  const bool readable = found.ok();
  Value tree = validate(document.tree, found);
  if (!found.ok() || !readable) return failed();

  RunConfig config = read_run_config(tree);
  check_agreement({config, tree, document.sources, found});
  if (!found.ok()) return failed();
  std::string warnings = found.render(document.sources);
  return Loaded{std::move(config), std::move(tree), std::move(document.sources),
                std::move(warnings)};
}

}  // namespace

Result<Loaded> load(const DocumentRequest& request) {
  Diagnostics found;
  Document document = read_document(request, found);
  if (found.ok()) read_model_folder(request.read, model_kinds(), document, found);
  return check(std::move(document), found, name_from(request.path));
}

Result<Loaded> load_message(Value body, std::string name) {
  Diagnostics found;
  return load_message(std::move(body), std::move(name), found);
}

Result<Loaded> load_message(Value body, std::string name, Diagnostics& found) {
  Document document = document_from(std::move(body), std::move(name), found);
  refuse_model_folder(document, found);
  return check(std::move(document), found, "run");
}

namespace {

/// A tree that was read may lack keys; a tree that was checked is complete.
enum class Tree { as_read, complete };

Status changes_live_keys(const Value& tree, Tree kind, const Value& running,
                         const Sources& sources) {
  const auto schema = schema_for(running);
  for (const auto& key : schema->keys()) {
    const Value* now = value_at(tree, key.name);
    const Value* before = value_at(running, key.name);
    if (key.change == Change::live || (!now && !before) || (now && before && *now == *before))
      continue;
    if (!now && kind == Tree::as_read) continue;
    Diagnostics fixed;
    fixed.add({.key = key.name,
               .message = key.name + " cannot be changed while the run is active",
               .position = now ? now->position : Position{}});
    return Error{fixed.render(sources)};
  }
  return Done{};
}

std::string mix_of(const Value& tree) {
  const Value* mix = value_at(tree, "data.mix");
  return mix && mix->text() ? *mix->text() : "";
}

/// Returns the mixture of a run after `steps` steps got the weights that a tree asks for.
Result<std::string> changed_mix(const Loaded& running, const Value& asked, std::int64_t steps) {
  const std::string now = mix_of(running.tree), wanted = mix_of(asked);
  if (wanted == now || wanted.empty()) return now;
  if (now.empty())
    return Error{
        "error: data.mix cannot be set while the run is active: it began with data.train "
        "= \"" +
        running.config.data.train +
        "\"; only the weights of a run that began with data.mix can change"};
  const auto before = Mixture::parse(now), weights = Mixture::parse(wanted);
  if (!weights) return Error{"error: data.mix: " + weights.error().text};
  const auto changed = before->changed_from(steps, *weights);
  if (!changed) return Error{"error: data.mix: " + changed.error().text};
  return *changed == *before ? now : changed->text();
}

}  // namespace

Result<Loaded> set_live(const Loaded& running, const std::string& setting, std::int64_t steps) {
  const auto& rate = running.config.optimizer.rate;
  auto changes = rate.changes;
  const double height = changes.empty() ? rate.lr : changes.back().lr;
  Diagnostics found;
  Document document{.sources = running.sources, .tree = running.tree};
  set_at(document.tree, "optimizer.lr", height);
  apply_settings({setting}, document, found);
  // A key that is not live is refused as such, also if its value does not fit the other keys.
  if (auto live = changes_live_keys(document.tree, Tree::as_read, running.tree, document.sources);
      !live)
    return live.error();
  const auto mix = changed_mix(running, document.tree, steps);
  if (!mix) return mix.error();
  const bool has_mix = !mix_of(document.tree).empty() && !mix->empty();
  if (has_mix) set_at(document.tree, "data.mix", *mix);
  auto changed = check(std::move(document), found, running.config.name);
  if (!changed) return changed;
  if (auto live = changes_live_keys(changed->tree, Tree::complete, running.tree, changed->sources);
      !live)
    return live.error();

  const double wanted = changed->config.optimizer.rate.lr;
  set_at(changed->tree, "optimizer.lr", *value_at(running.tree, "optimizer.lr"));
  if (has_mix) set_at(changed->tree, "data.mix", mix_of(running.tree));
  // Keys that depend on another key may move, such as a schedule's end that follows train.steps.
  if (const auto moved = recipe_changes(recipe_of(changed->tree), recipe_of(running.tree));
      !moved.empty())
    return Error{"error: " + setting + " would change the results of completed steps: " + moved[0]};
  if (wanted != height) {
    if (!changes.empty() && changes.back().from > steps)
      return Error{"error: " + setting + " from step " + std::to_string(steps) +
                   ": what comes from step " + std::to_string(changes.back().from) +
                   " on was set already"};
    std::erase_if(changes, [&](const auto& change) { return change.from == steps; });
    changes.push_back({steps, wanted});
    set_at(changed->tree, "optimizer.changes", to_text(changes));
  }
  if (has_mix) set_at(changed->tree, "data.mix", *mix);
  changed->config = read_run_config(changed->tree);
  return changed;
}

Loaded leave_out_step(const Loaded& running, std::int64_t step) {
  Loaded changed = running;
  auto steps = running.config.train.skip_steps;
  const auto place = std::ranges::lower_bound(steps, step);
  if (place == steps.end() || *place != step) steps.insert(place, step);
  set_at(changed.tree, "train.skip_steps", Value::List(steps.begin(), steps.end()));
  changed.config = read_run_config(changed.tree);
  return changed;
}

}  // namespace troupe::config
