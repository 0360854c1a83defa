#include "apps/run/run_folder.h"

#include "apps/events/event.h"
#include "config/recipe.h"
#include "core/digest.h"
#include "core/json.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/files/safetensors.h"

namespace troupe::apps {
namespace {

constexpr const char* advice =
    "wait until that process has ended, stop it, or give this run another name";

/// Moves the remains of an earlier run of that name aside, unless that run is still active.
Result<std::string> move_aside(storage::Files& files, const storage::Claimant& claimant,
                               const std::string& folder) {
  const auto held = storage::lock_folder(files, claimant, folder, advice);
  if (!held) return held.error();
  for (int number = 1;; ++number) {
    const std::string moved = folder + "." + std::to_string(number);
    const auto taken = files.exists(moved);
    if (!taken.ok()) return taken.error();
    if (*taken) continue;
    if (auto renamed = files.rename(folder, moved); !renamed) return renamed.error();
    return moved;
  }
}

/// Returns the id of a recipe, by which runs that share a checkpoint folder are told apart. Two
/// runs of one configuration save identical bytes. The precision and the micro-batch size, which a
/// head may choose, are left out.
std::string id_of_recipe(const Value& tree) {
  Value recipe = config::recipe_of(tree);
  std::erase_if(*recipe.map(), [](const Value::Entry& entry) { return entry.key == "precision"; });
  if (Value* batch = recipe.find("batch"); batch && batch->map())
    std::erase_if(*batch->map(), [](const Value::Entry& entry) { return entry.key == "micro"; });
  return to_string(digest_of(to_json(recipe))).substr(0, 16);
}

/// Returns the id by which a run finds its checkpoints among those of other runs. A resumed run
/// takes the id from its folder, or from the newest checkpoint if the folder has none.
Result<std::string> id_of_run(storage::Files& files, const RunPlace& place,
                              const config::Loaded& loaded, RunStart start) {
  const std::string path = place.folder + "/id";
  const auto there = files.exists(path);
  if (!there.ok()) return there.error();
  if (*there) {
    const auto bytes = files.read(path);
    if (!bytes) return bytes.error();
    std::string id(bytes->text().substr(0, bytes->text().find('\n')));
    if (!id.empty()) return id;
  }
  std::string id;
  if (start != RunStart::anew) {
    const auto listed = storage::list_checkpoints(files, loaded.config.checkpoint.directory);
    if (!listed) return listed.error();
    for (const auto& each : *listed)
      if (id.empty() && each.manifest) id = each.manifest->run;
  }
  if (id.empty()) id = id_of_recipe(loaded.tree);
  if (auto kept = storage::replace_file(files, path, id + "\n"); !kept) return kept.error();
  return id;
}

}  // namespace

void RunPlace::give_back() {
  if (checkpoints) checkpoints->give_back();
  lock.reset();
}

Result<RunPlace> enter_run_place(storage::Files& files, const storage::Claimant& claimant,
                                 const config::Loaded& loaded, RunStart start) {
  const auto& config = loaded.config;
  RunPlace place;
  place.folder = "runs/" + config.name;
  const auto there = files.exists(place.folder);
  if (!there.ok()) return there.error();
  if (start == RunStart::anew && *there) {
    auto moved = move_aside(files, claimant, place.folder);
    if (!moved) return moved.error();
    place.moved = std::move(*moved);
  }
  if (auto made = files.make_directory(place.folder); !made) return made.error();
  auto lock = storage::lock_folder(files, claimant, place.folder, advice);
  if (!lock) return lock.error();
  place.lock = std::move(*lock);
  const auto id = id_of_run(files, place, loaded, start);
  if (!id) return id.error();
  auto claim = storage::RootClaim::take(files, claimant, config.checkpoint.directory, *id);
  if (!claim) return claim.error();
  place.checkpoints = std::move(*claim);
  return place;
}

Value state_event(const config::RunConfig& config, const std::string& state,
                  const std::string& why) {
  Value value = event("run.state", config.name);
  value.set("state", state);
  if (!why.empty()) value.set("why", why);
  return value;
}

Value ended_event(const config::RunConfig& config, const std::string& state, const std::string& why,
                  std::int64_t skipped_steps) {
  Value value = state_event(config, state, why);
  if (skipped_steps > 0) value.set("skipped_steps", skipped_steps);
  return value;
}

Value warning_event(const config::RunConfig& config, const std::string& text) {
  Value value = event("warn", config.name);
  value.set("text", text);
  return value;
}

Value decision_event(const config::RunConfig& config, const actors::decide::Answer& answer) {
  Value value = event("decision", config.name);
  Value::List rows;
  for (const auto row : answer.rows) rows.emplace_back(actors::decide::to_string(row));
  value.set("rows", std::move(rows));
  value.set("why", answer.reason);
  return value;
}

Status export_weights(storage::Files& files, const std::string& path,
                      const std::vector<NamedTensor>& tensors) {
  const std::string unfinished = path + ".part";
  if (auto removed = storage::remove_if_there(files, unfinished); !removed) return removed;
  std::vector<storage::TensorView> views;
  views.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) views.push_back(storage::view(name, tensor));
  storage::sort_as_ecosystem(views);
  if (auto written = storage::write_safetensors(files, unfinished, views); !written)
    return written.error();
  return files.rename(unfinished, path);
}

}  // namespace troupe::apps
