#pragma once

#include <memory>
#include <string>

#include "apps/run/run_setup.h"
#include "core/memory/stream.h"
#include "core/result.h"
#include "models/train/optimizer.h"
#include "models/train/stage.h"
#include "storage/checkpoint/checkpoint.h"

namespace troupe::apps {

/// Opens a checkpoint. `path` is the checkpoint's own folder, or a folder of checkpoints, whose
/// newest good one is opened.
Result<storage::Checkpoint> open_checkpoint(storage::Files& files, const std::string& path);

/// The model of a checkpoint with its weights, ready for evaluation.
class TrainedModel {
 public:
  static Result<std::unique_ptr<TrainedModel>> open(storage::Files& files, const std::string& path,
                                                    int threads);

  const models::Model& model() const { return model_; }
  const std::string& directory() const { return directory_; }
  Stream& stream() { return stream_; }

  /// Returns logits if there are no targets, else the loss of each target.
  Tensor evaluate(Tensor input, Tensor targets = {}) {
    return stage_.evaluate(stream_, *weights_, std::move(input), std::move(targets));
  }

 private:
  TrainedModel(models::Model model, std::string directory, int threads);

  models::Model model_;
  std::string directory_;
  MemoryPool memory_;  // Outlives all tensors below.
  Stream stream_;
  models::Stage stage_;
  models::WeightsPtr weights_;
};

}  // namespace troupe::apps
