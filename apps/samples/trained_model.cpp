#include "apps/samples/trained_model.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "apps/weights/export_folder.h"
#include "apps/weights/foreign_weights.h"
#include "config/model_kinds.h"
#include "models/train/trained.h"

namespace troupe::apps {

Result<std::map<std::string, storage::TensorView>> averages_of(
    const storage::Checkpoint& checkpoint) {
  const std::string ending = "." + std::string(models::ema_name);
  std::map<std::string, storage::TensorView> averages;
  for (const auto& view : checkpoint.optimizer())
    if (view.name.ends_with(ending))
      averages.emplace(view.name.substr(0, view.name.size() - ending.size()), view);
  if (!averages.empty()) return averages;
  return Error{checkpoint.directory() +
               ": --ema: found no averages of weights; a run keeps them if train.ema is set"};
}

TrainedUnits::TrainedUnits(const models::Model& model, models::UnitRange units, Stream& stream,
                           const models::Weights& of_model, kernels::Precision precision)
    : stream_(stream), stage_(model, units, {.precision = precision}) {
  std::ptrdiff_t slots = 0, buffers = 0;  // The numbers of slots and buffers of the units before.
  for (int i = 0; i < units.first; ++i) {
    const auto& layer = *model.units[static_cast<std::size_t>(i)].layer;
    slots += std::ssize(layer.parameters());
    buffers += std::ssize(layer.buffers());
  }
  const auto part = [](const auto& all, std::ptrdiff_t first, const auto& own) {
    return std::vector(all.begin() + first, all.begin() + first + std::ssize(own));
  };
  weights_ = {.version = of_model.version,
              .slots = part(of_model.slots, slots, stage_.parameters()),
              .buffers = part(of_model.buffers, buffers, stage_.buffers()),
              .loss_scale = of_model.loss_scale};
}

TrainedModel::TrainedModel(models::Model model, std::string directory, int threads,
                           kernels::Precision precision)
    : model_(std::move(model)),
      directory_(std::move(directory)),
      precision_(precision),
      stream_(memory_, threads),
      stage_(model_, {0, static_cast<int>(model_.units.size())}, {.precision = precision}) {
  prepare_computing_thread();
}

Result<std::unique_ptr<TrainedModel>> TrainedModel::open(const storage::Checkpoint& checkpoint,
                                                         int threads, kernels::Precision precision,
                                                         WhichWeights which, ModelUse use) {
  const Value& described = checkpoint.manifest().model;
  auto model =
      config::model_from(use == ModelUse::writing ? config::table_of_writer(described) : described);
  if (!model) return within(checkpoint.directory(), model.error());
  std::unique_ptr<TrainedModel> trained(
      new TrainedModel(std::move(*model), checkpoint.directory(), threads, precision));
  if (const Value* beside = checkpoint.manifest().state.find(std::string(kept_beside)))
    trained->beside_ = *beside;
  std::map<std::string, storage::TensorView> averages;
  if (which == WhichWeights::averaged) {
    auto found = averages_of(checkpoint);
    if (!found) return found.error();
    averages = std::move(*found);
  }
  std::vector<NamedTensor> tensors;
  for (const auto& view : checkpoint.weights()) {
    const auto average = averages.find(view.name);
    auto tensor = average == averages.end()
                      ? checkpoint.load_weight(view.name, trained->memory_)
                      : checkpoint.load_optimizer(average->second.name, trained->memory_);
    if (!tensor) return tensor.error();
    tensors.push_back({view.name, std::move(*tensor)});
  }
  widen(tensors, trained->memory_);
  // Only an optimizer can make a version of the weights, so one makes the only version here.
  models::Optimizer optimizer({}, trained->stage_.parameters(), trained->stage_.buffers(),
                              precision);
  auto weights = optimizer.from(trained->stream_, tensors, checkpoint.manifest().step);
  if (!weights) return within(checkpoint.directory(), weights.error());
  trained->weights_ = std::move(*weights);
  return trained;
}

}  // namespace troupe::apps
