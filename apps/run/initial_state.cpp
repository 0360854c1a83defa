#include "apps/run/initial_state.h"

#include <set>
#include <string>
#include <utility>

#include "actors/checkpoints.h"
#include "apps/weights/foreign_weights.h"
#include "config/recipe.h"
#include "config/schema.h"
#include "core/json.h"
#include "core/memory/device.h"
#include "models/layers/lora.h"
#include "models/train/initial_weights.h"
#include "models/train/optimizer.h"
#include "models/train/stage.h"
#include "storage/checkpoint/ledger.h"
#include "storage/checkpoint/match.h"
#include "storage/files/weight_files.h"

namespace troupe::apps {
namespace {

Result<std::vector<NamedTensor>> load_file(const RunToBegin& run, const std::string& path) {
  const auto file = storage::WeightFiles::open(*run.setup.files, path);
  if (!file) return file.error();
  auto weights = read_weights(file->tensors(), run.setup.model, run.memory);
  if (!weights) return within(path, weights.error());
  return std::move(weights->tensors);
}

/// Opens the newest good checkpoint of a run, which is named by its folder below runs/, or the best
/// one of NAME@best.
Result<storage::Checkpoint> open_of_run(storage::Files& files, const std::string& name) {
  const auto wanted = storage::wanted_checkpoint(name);
  const std::string folder = "runs/" + wanted.of + "/checkpoints";
  if (wanted.best) {
    const auto best = storage::best_checkpoint(files, folder);
    if (!best) return best.error();
    return storage::Checkpoint::open(files, *best);
  }
  auto newest = storage::open_newest_checkpoint(files, folder);
  if (!newest) return newest.error();
  if (!*newest)
    return Error{folder + ": there is no checkpoint; `troupe runs --local` lists the runs here"};
  return std::move((*newest)->checkpoint);
}

Result<std::vector<NamedTensor>> load_run(storage::Files& files, const std::string& name,
                                          MemoryPool& memory) {
  const auto checkpoint = open_of_run(files, name);
  if (!checkpoint) return checkpoint.error();
  std::vector<NamedTensor> tensors;
  for (const auto& view : checkpoint->weights()) {
    auto tensor = checkpoint->load_weight(view.name, memory);
    if (!tensor) return within(checkpoint->directory(), tensor.error());
    tensors.push_back({view.name, std::move(*tensor)});
  }
  return tensors;
}

/// Checks the weights and optimizer state before anything starts, so that an error the optimizers
/// would find comes early.
Status check(const RunToBegin& run, const actors::StartPoint& start, const std::string& where) {
  Stream stream = Stream::rehearsal(run.memory);
  const models::Stage whole(run.setup.model, {0, static_cast<int>(run.setup.model.units.size())},
                            {});
  models::Optimizer optimizer(run.config.optimizer, whole.parameters(), whole.buffers(),
                              run.setup.precision);
  if (auto weights = optimizer.from(stream, start.weights, start.step); !weights)
    return within(where, weights.error());
  if (auto restored = optimizer.restore(stream, start.moments, start.step); !restored)
    return within(where, restored.error());
  return Done{};
}

/// Draws the low-rank additions (LoRA) that the weights of a base lack.
void add_lora(const RunToBegin& run, std::vector<NamedTensor>& weights) {
  std::set<std::string> known;
  for (const auto& [name, tensor] : weights) known.insert(name);
  Stream stream(run.memory);
  for (const auto& unit : run.setup.model.units)
    for (const auto& parameter : unit.layer->parameters()) {
      if (!models::is_of_lora(parameter.name) || !known.insert(parameter.name).second) continue;
      Tensor value = stream.make(parameter.shape, parameter.type);
      models::draw_initial(stream, parameter, run.config.seed, 0, value.count(), value);
      weights.push_back({parameter.name, std::move(value)});
    }
}

/// Returns whether a run without a checkpoint may begin at step 0.
Status may_begin_anew(const RunToBegin& run) {
  const std::string ledger = "runs/" + run.config.name + "/ledger";
  const auto saved = storage::newest_save(run.files, ledger);
  if (!saved) return saved.error();
  if (!*saved) return Done{};
  return Error{ledger + ": step " + std::to_string((*saved)->step) + " was saved below " +
               (*saved)->below + ", but below " + run.config.checkpoint.directory +
               " there is no checkpoint now; mount or restore that folder and resume again, or "
               "start at step 0 with --from-scratch"};
}

/// Returns what a user can do whose run has other settings than the checkpoint.
std::string ways_on(const Value& made, const Value& wanted, const std::string& run) {
  const std::string key = "optimizer.schedule.total_steps";
  const Value* before = config::value_at(made, key);
  const Value* now = config::value_at(wanted, key);
  std::string text = "\nto continue this run, give it the settings of the checkpoint";
  if (before && now && *before != *now)
    text += "; for N more steps at the schedule's last learning rate: --resume --extend N";
  return text +
         "\nto begin a new run with its weights: train without --resume, with --set name=NEW "
         "--set model.init=run:" +
         run;
}

}  // namespace

Result<actors::StartPoint> first_state(const RunToBegin& run) {
  actors::StartPoint start;
  if (run.config.model.init == "random") return start;
  constexpr std::string_view of_run = "run:";
  const std::string& init = run.config.model.init;
  auto tensors = init.starts_with(of_run)
                     ? load_run(*run.setup.files, init.substr(of_run.size()), run.memory)
                     : load_file(run, init);
  if (!tensors) return within("model.init", tensors.error());
  start.weights = std::move(*tensors);
  widen(start.weights, run.memory);
  add_lora(run, start.weights);
  if (auto good = check(run, start, "model.init: " + run.config.model.init); !good)
    return good.error();
  return start;
}

Result<Resumed> resumed_state(const RunToBegin& run, SavesGone saves_gone) {
  Resumed resumed;
  auto found = storage::open_newest_checkpoint(run.files, run.config.checkpoint.directory, run.id);
  if (!found) return found.error();
  if (!*found) {
    if (saves_gone == SavesGone::refuse)
      if (auto may = may_begin_anew(run); !may) return may.error();
    resumed.warnings.push_back("there is no checkpoint below " + run.config.checkpoint.directory +
                               " yet: starting at step 0");
    auto first = first_state(run);
    if (!first) return first.error();
    resumed.start = std::move(*first);
    return resumed;
  }
  for (const auto& skipped : (*found)->skipped)
    resumed.warnings.push_back(skipped.directory + " is damaged and was skipped: " + skipped.why);
  const storage::Checkpoint& checkpoint = (*found)->checkpoint;
  if (auto same = storage::match_model(checkpoint.manifest(), run.setup.model_description); !same)
    return within(checkpoint.directory(), same.error());
  // Only settings that were in force up to that step decided the checkpoint's numbers.
  storage::Manifest made = checkpoint.manifest();
  made.recipe = config::recipe_until(std::move(made.recipe), made.step);
  Value recipe = config::recipe_until(run.recipe, made.step);
  // Checkpoints of an earlier version hold no digests of data files, so the comparison leaves them
  // out.
  Value* data = recipe.find("data");
  if (data && data->map() && !config::value_at(made.recipe, "data.files"))
    std::erase_if(*data->map(), [](const Value::Entry& entry) { return entry.key == "files"; });
  if (auto same = storage::match_recipe(made, recipe); !same)
    return Error{within(checkpoint.directory(), same.error()).text +
                 ways_on(made.recipe, recipe, run.config.name)};
  auto start = actors::start_point(checkpoint, run.memory);
  if (!start) return start.error();
  resumed.start = std::move(*start);
  if (auto good = check(run, resumed.start, checkpoint.directory()); !good) return good.error();
  return resumed;
}

}  // namespace troupe::apps
