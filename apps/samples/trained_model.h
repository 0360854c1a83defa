#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/memory/memory_pool.h"
#include "core/memory/stream.h"
#include "core/memory/tensor.h"
#include "core/result.h"
#include "core/value.h"
#include "kernels/linear.h"
#include "models/model.h"
#include "models/train/optimizer.h"
#include "models/train/stage.h"
#include "storage/checkpoint/checkpoint.h"

namespace troupe::apps {

/// The weights of a checkpoint: the newest, or their exponential average (train.ema).
enum class WhichWeights { newest, averaged };

/// Whether a model is as it was trained, or writes a text (config::table_of_writer).
enum class ModelUse { as_trained, writing };

/// Returns the views of a checkpoint's averages of weights, by the name of the weight. Fails if it
/// has none.
Result<std::map<std::string, storage::TensorView>> averages_of(
    const storage::Checkpoint& checkpoint);

/// Consecutive units of a trained model, which must outlive them.
class TrainedUnits {
 public:
  /// Evaluates a bundle as it comes before the first of the units.
  models::Bundle evaluate(models::Bundle input) {
    return stage_.evaluate(stream_, weights_, std::move(input));
  }
  /// See models::Stage. Only if the model continues_from() the first of the units.
  models::ContinuedText begin_text(std::int64_t most) const { return stage_.begin_text(most); }
  models::Bundle continue_text(models::NextTokens next, models::ContinuedText& text) {
    return stage_.continue_text(stream_, weights_, std::move(next), text);
  }

 private:
  friend class TrainedModel;
  TrainedUnits(const models::Model& model, models::UnitRange units, Stream& stream,
               const models::Weights& of_model, kernels::Precision precision);

  Stream& stream_;
  models::Stage stage_;
  models::Weights weights_;
};

/// The model of a checkpoint with its weights, ready for evaluation on the thread that opens it.
class TrainedModel {
 public:
  /// `precision` is that of products.
  static Result<std::unique_ptr<TrainedModel>> open(
      const storage::Checkpoint& checkpoint, int threads,
      kernels::Precision precision = kernels::Precision::fp32,
      WhichWeights which = WhichWeights::newest, ModelUse use = ModelUse::as_trained);

  const models::Model& model() const { return model_; }
  const std::string& directory() const { return directory_; }
  Stream& stream() { return stream_; }

  /// Returns logits if there are no targets, else the loss of each target.
  Tensor evaluate(models::Bundle inputs, Tensor targets = {}) {
    return stage_.evaluate(stream_, *weights_, std::move(inputs), std::move(targets)).stream;
  }

  TrainedUnits units(models::UnitRange range) {
    return {model_, range, stream_, *weights_, precision_};
  }

  /// Returns a text that lay beside the weights when they were imported, or null: config.json.
  const std::string* text_beside(const std::string& name) const {
    const Value* text = beside_.find(name);
    return text ? text->text() : nullptr;
  }

  /// Returns whether the model can go on with a text without reading all of it again: each position
  /// depends on earlier ones alone.
  bool can_continue() const { return model_.continues_from(0); }
  /// Begins a text of at most `most` tokens, which is at most the model's context.
  models::ContinuedText begin_text(std::int64_t most) const { return stage_.begin_text(most); }
  /// Returns the logits of the text's next tokens, [1, n, classes]. They have the bits that
  /// evaluate() computes from the whole text so far.
  Tensor continue_text(Tensor next, models::ContinuedText& text) {
    const std::int64_t count = next.shape()[1];
    return stage_.continue_text(stream_, *weights_, {std::move(next), count}, text).stream;
  }

 private:
  TrainedModel(models::Model model, std::string directory, int threads,
               kernels::Precision precision);

  models::Model model_;
  std::string directory_;
  Value beside_;
  kernels::Precision precision_;
  MemoryPool memory_;  // Outlives all tensors below.
  Stream stream_;
  models::Stage stage_;
  models::WeightsPtr weights_;
};

}  // namespace troupe::apps
