#include "apps/commands/named_checkpoint.h"

#include <utility>

#include "apps/report/run_events.h"
#include "apps/run/run_setup.h"
#include "config/load.h"
#include "config/schema/dotted.h"

namespace troupe::apps {
namespace {

/// Returns the precision in which a checkpoint was trained, if this machine's processor is made for
/// it; else fp32.
kernels::Precision precision_of(const storage::Checkpoint& checkpoint) {
  const Value* compute = config::value_at(checkpoint.manifest().recipe, "precision.compute");
  const auto best = best_precision_here();
  const bool is_best = compute && compute->text() && *compute->text() == to_string(best);
  return is_best ? best : kernels::Precision::fp32;
}

}  // namespace

std::string run_folder_of(const std::string& checkpoint) {
  return storage::parent_of(storage::parent_of(checkpoint));
}

Result<std::string> checkpoints_of(storage::Files& files, const std::string& what) {
  const auto given = files.exists(what);
  if (!given.ok()) return given.error();
  if (const auto wanted = storage::wanted_checkpoint(what); !*given && wanted.best) {
    const auto folder = checkpoints_of(files, wanted.of);
    return folder ? storage::best_checkpoint(files, *folder) : folder;
  }
  std::string folder = what;
  if (!*given) {
    auto run = folder_of_run(files, what);
    if (!run) return run;
    folder = std::move(*run);
  }
  const std::string below = folder + "/checkpoints";
  const auto there = files.exists(below);
  if (!there.ok()) return there.error();
  return *there ? below : folder;
}

Result<storage::Checkpoint> open_checkpoint(storage::Files& files, const std::string& what) {
  const auto found = checkpoints_of(files, what);
  if (!found) return found.error();
  const std::string& path = *found;
  const auto is_one = files.exists(path + "/manifest.json");
  if (!is_one.ok()) return is_one.error();
  if (*is_one) return storage::Checkpoint::open(files, path);
  auto newest = storage::open_newest_checkpoint(files, path);
  if (!newest) return newest.error();
  if (!*newest)
    return Error{path +
                 ": there is no checkpoint in this folder; `troupe train` and `troupe checkpoint "
                 "import` make them"};
  return std::move((*newest)->checkpoint);
}

Result<std::string> tokenizer_of(storage::Files& files, const std::string& checkpoint) {
  const std::string path = run_folder_of(checkpoint) + "/tokenizer.json";
  const auto there = files.exists(path);
  if (!there.ok()) return there.error();
  return *there ? path : std::string();
}

Result<std::optional<config::RunConfig>> config_of(storage::Files& files,
                                                   const std::string& checkpoint) {
  const std::string path = run_folder_of(checkpoint) + "/config.toml";
  const auto there = files.exists(path);
  if (!there.ok()) return there.error();
  if (!*there) return std::optional<config::RunConfig>();
  auto loaded = config::load({path, {}});
  if (!loaded) return loaded.error();
  return std::optional(std::move(loaded->config));
}

Result<std::unique_ptr<TrainedModel>> open_model(storage::Files& files, const std::string& path,
                                                 int threads, Products products, WhichWeights which,
                                                 ModelUse use) {
  const auto checkpoint = open_checkpoint(files, path);
  if (!checkpoint) return checkpoint.error();
  const auto precision =
      products == Products::as_trained ? precision_of(*checkpoint) : kernels::Precision::fp32;
  return TrainedModel::open(*checkpoint, threads, precision, which, use);
}

}  // namespace troupe::apps
