#pragma once

#include <memory>
#include <optional>
#include <string>

#include "apps/run/run_setup.h"
#include "config/run_config.h"
#include "core/memory/stream.h"
#include "core/result.h"
#include "models/train/optimizer.h"
#include "models/train/stage.h"
#include "storage/checkpoint/checkpoint.h"

namespace troupe::apps {

/// Returns the folder that a person means by a checkpoint's own folder, by a folder of checkpoints,
/// by the folder of a run, or by the name of a run below runs/. In the last two cases that is the
/// run's folder of checkpoints. Each of them with "@best" means the best checkpoint there.
Result<std::string> checkpoints_of(storage::Files& files, const std::string& what);

/// Opens a checkpoint. `path` is what checkpoints_of() understands. Of several checkpoints the
/// newest good one is opened.
Result<storage::Checkpoint> open_checkpoint(storage::Files& files, const std::string& path);

/// Returns the path of the tokenizer that the run of a checkpoint has left in its folder; empty if
/// there is none.
Result<std::string> tokenizer_of(storage::Files& files, const std::string& checkpoint);

/// Returns the configuration that the run of a checkpoint has left in its folder; nothing if there
/// is none.
Result<std::optional<config::RunConfig>> config_of(storage::Files& files,
                                                   const std::string& checkpoint);

/// The model of a checkpoint with its weights, ready for evaluation.
class TrainedModel {
 public:
  /// The precision of products: fp32, or that of the training if this machine's processor is made
  /// for it.
  enum class Products { fp32, as_trained };

  static Result<std::unique_ptr<TrainedModel>> open(storage::Files& files, const std::string& path,
                                                    int threads,
                                                    Products products = Products::fp32);

  const models::Model& model() const { return model_; }
  const std::string& directory() const { return directory_; }
  Stream& stream() { return stream_; }

  /// Returns logits if there are no targets, else the loss of each target.
  Tensor evaluate(Tensor input, Tensor targets = {}) {
    return stage_.evaluate(stream_, *weights_, std::move(input), std::move(targets));
  }

 private:
  TrainedModel(models::Model model, std::string directory, int threads,
               kernels::Precision precision);

  models::Model model_;
  std::string directory_;
  MemoryPool memory_;  // Outlives all tensors below.
  Stream stream_;
  models::Stage stage_;
  models::WeightsPtr weights_;
};

}  // namespace troupe::apps
