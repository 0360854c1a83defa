#include "apps/commands/trained_model.h"

namespace troupe::apps {

Result<std::string> checkpoints_of(storage::Files& files, const std::string& what) {
  const auto given = files.exists(what);
  if (!given.ok()) return given.error();
  const std::string below = (*given ? what : "runs/" + what) + "/checkpoints";
  const auto there = files.exists(below);
  if (!there.ok()) return there.error();
  return *there ? below : what;
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
  // runs/NAME/checkpoints/step-000000001000
  const std::string path = storage::parent_of(storage::parent_of(checkpoint)) + "/tokenizer.json";
  const auto there = files.exists(path);
  if (!there.ok()) return there.error();
  return *there ? path : std::string();
}

TrainedModel::TrainedModel(models::Model model, std::string directory, int threads)
    : model_(std::move(model)),
      directory_(std::move(directory)),
      stream_(memory_, threads),
      stage_(model_, {0, static_cast<int>(model_.units.size())}, {}) {
  prepare_computing_thread();
}

Result<std::unique_ptr<TrainedModel>> TrainedModel::open(storage::Files& files,
                                                         const std::string& path, int threads) {
  const auto checkpoint = open_checkpoint(files, path);
  if (!checkpoint) return checkpoint.error();
  auto model = model_from(checkpoint->manifest().model);
  if (!model) return within(checkpoint->directory(), model.error());
  std::unique_ptr<TrainedModel> trained(
      new TrainedModel(std::move(*model), checkpoint->directory(), threads));
  std::vector<NamedTensor> tensors;
  for (const auto& view : checkpoint->weights()) {
    auto tensor = checkpoint->load_weight(view.name, trained->memory_);
    if (!tensor) return tensor.error();
    tensors.push_back({view.name, std::move(*tensor)});
  }
  // Only an optimizer can make a version of the weights, so one makes the only version here.
  models::Optimizer optimizer({}, trained->stage_.parameters(), trained->stage_.buffers(),
                              kernels::Precision::fp32);
  auto weights = optimizer.from(trained->stream_, tensors, checkpoint->manifest().step);
  if (!weights) return within(checkpoint->directory(), weights.error());
  trained->weights_ = std::move(*weights);
  return trained;
}

}  // namespace troupe::apps
