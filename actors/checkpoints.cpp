#include "actors/checkpoints.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe::actors {
namespace {

Result<std::vector<NamedTensor>> load_all(const std::vector<storage::TensorView>& views,
                                          MemoryPool& memory) {
  std::vector<NamedTensor> tensors;
  tensors.reserve(views.size());
  for (const auto& view : views) {
    auto tensor = storage::load(view, memory);
    if (!tensor) return within(view.name, tensor.error());
    tensors.push_back({view.name, std::move(*tensor)});
  }
  return tensors;
}

}  // namespace

Result<StartPoint> start_point(const storage::Checkpoint& checkpoint, MemoryPool& memory) {
  auto weights = load_all(checkpoint.weights(), memory);
  if (!weights) return within(checkpoint.directory(), weights.error());
  auto moments = load_all(checkpoint.optimizer(), memory);
  if (!moments) return within(checkpoint.directory(), moments.error());
  return StartPoint{checkpoint.manifest().step, std::move(*weights), std::move(*moments)};
}

Result<std::optional<StartPoint>> newest_checkpoint(storage::Files& files, const std::string& root,
                                                    MemoryPool& memory) {
  auto found = storage::open_newest_checkpoint(files, root);
  if (!found) return found.error();
  if (!*found) return std::optional<StartPoint>();
  auto start = start_point((*found)->checkpoint, memory);
  if (!start) return start.error();
  return std::optional(std::move(*start));
}

storage::CheckpointContent checkpoint_content(const RunSpec& spec, std::int64_t step,
                                              std::vector<Snapshot> snapshots) {
  storage::CheckpointContent content;
  content.step = step;
  content.samples = step * spec.samples_in_step;
  content.recipe = spec.recipe;
  content.model = spec.model_description;
  for (auto& of_stage : snapshots) {
    std::ranges::move(of_stage.weights, std::back_inserter(content.weights));
    std::ranges::move(of_stage.moments, std::back_inserter(content.optimizer));
  }
  std::ranges::sort(content.weights, {}, &NamedTensor::name);
  std::ranges::sort(content.optimizer, {}, &NamedTensor::name);
  return content;
}

}  // namespace troupe::actors
