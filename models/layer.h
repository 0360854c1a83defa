#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/memory/stream.h"
#include "core/memory/tensor.h"
#include "core/random.h"
#include "models/kept_values.h"
#include "models/parameter.h"
#include "models/work.h"

namespace troupe::models {

enum class Mode : std::uint8_t { training, evaluation };

/// The context of a micro-batch's pass through a layer.
struct Pass {
  Stream& stream;
  Mode mode = Mode::training;
  kernels::Precision precision = kernels::Precision::fp32;
  /// The key of the micro-batch's first sample. A layer that draws sets `operation`.
  RandomKey key;
  Tensor targets;  // For the loss.
  /// The gradient of each target's loss: its weight in the step, 1 / targets, times the loss scale.
  float loss_gradient = 1;
  /// How many targets of the micro-batch count. A layer's own loss weighs as much as they do.
  std::int64_t targets_that_count = 0;
  /// The values that units keep and read. Null if the model keeps none.
  Frame* frame = nullptr;
  /// In a pass that continues a text (Stage::continue_text): the position of the text's first row,
  /// and the number of positions that caches are for.
  std::int64_t first_position = 0;
  std::int64_t most_positions = 0;
};

/// The rows of a sample that a row of a layer's output depends on. A text can be continued if no
/// row depends on later rows.
enum class Reach : std::uint8_t {
  own_row,       // On the same row of the input, and on what is not of the text.
  earlier_rows,  // Also on earlier rows. The layer caches what it needs of them.
  all_rows,      // On later rows, or on other samples.
};

/// Whether a tensor has the rows of the next tokens in a pass that continues a text, or does not
/// depend on the text and is the same in each pass.
enum class RowSource : std::uint8_t { text, fixed };

/// The sources of the kept values so far, indexed by number.
using KeptSources = std::vector<RowSource>;

/// Whether a layer computes the gradient of its input. The model's own input needs none.
enum class InputGradient : std::uint8_t { wanted, unwanted };

/// How a layer's backward_input() uses the output's gradient.
enum class GradientUse : std::uint8_t {
  any,
  as_operand,  // In products only, so that the caller may pass an operand (kernels::as_operand).
  passed_on,   // It returns the gradient unchanged.
};

/// A piece of a model as pure functions: it owns no tensors and changes none. The caller passes in
/// weights and input and gets back the output and the tensors that the backward pass needs. Spans
/// have the lengths that the layer declared.
///
/// A layer returns outputs and gradients in fp32 or in the precision's activation_type(), which has
/// 16 bits on tensor cores. It accepts both. Stages exchange fp32 tensors.
///
/// `forward` fills `saved`. `backward_input` reads it and leaves in it only what `backward_weight`
/// needs. `backward_weight` empties it. Each runs once, in this order; other micro-batches may pass
/// in between. Evaluation discards the saved tensors.
class Layer {
 public:
  using WeightSpan = std::span<const Weight>;
  using BufferSpan = std::span<const Tensor>;
  using SavedSpan = std::span<Tensor>;

  virtual ~Layer() = default;

  virtual std::vector<Parameter> parameters() const { return {}; }
  virtual std::vector<Buffer> buffers() const { return {}; }
  /// Returns how many tensors the layer saves for its backward pass.
  virtual int saved() const { return 0; }
  virtual Reach reach() const { return Reach::all_rows; }
  /// Returns the reach over the rows of a text that passes continue, for an input from `stream`.
  /// Replaces that by the source of the output. Writes those of the values that the layer keeps. It
  /// is `all_rows` if the layer cannot continue the text for another reason, too.
  virtual Reach reach_from(RowSource& stream, KeptSources& /*kept*/) const {
    return stream == RowSource::fixed && reach() != Reach::own_row ? Reach::all_rows : reach();
  }
  /// Returns how many tensors the layer caches while a text is continued.
  virtual int cached() const { return 0; }
  virtual GradientUse gradient_use() const { return GradientUse::any; }
  /// Returns the output shape for an input shape. The first dimension is the batch. For planning.
  virtual Shape output(const Shape& input) const { return input; }
  /// Estimates the work of the layer's passes over such an input. For planning.
  virtual Work work(const Shape& input) const {
    return elementwise_work(input, output(input),
                            parameters().empty() ? Trained::no : Trained::yes);
  }

  /// The same two for a layer that keeps or takes values: it writes or reads their shapes.
  virtual Shape output_with(const Shape& input, KeptShapes& /*kept*/) const {
    return output(input);
  }
  virtual Work work_with(const Shape& input, KeptShapes& /*kept*/) const { return work(input); }

  struct In {
    const Pass& pass;
    WeightSpan weights;
    BufferSpan buffers;
    InputGradient input_gradient = InputGradient::wanted;
    /// One for each weight: whether nobody wants its gradient. Empty: all gradients are wanted.
    std::span<const std::uint8_t> frozen = {};
    /// The tensors of a text that is continued, else nothing. The layer allocates those that are
    /// empty, for Pass::most_positions, and adds to them.
    std::span<Tensor> caches = {};

    bool is_frozen(std::size_t weight) const { return !frozen.empty() && frozen[weight] != 0; }
  };

  /// `statistics` has one slot per buffer: in training the layer writes the micro-batch's statistic
  /// there.
  virtual Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const = 0;

  /// Returns the input's gradient. It is empty if nobody wants it, and for tokens, which have none.
  virtual Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const = 0;

  /// Adds to the gradients, one for each parameter. The layer allocates a matrix gradient that is
  /// empty. A layer without parameters does nothing. The caller drops gradients of frozen
  /// parameters; if all are frozen, it does not call this.
  virtual void backward_weight(const In& /*in*/, SavedSpan /*saved*/,
                               SavedSpan /*gradients*/) const {}
};

using LayerPtr = std::unique_ptr<const Layer>;

}  // namespace troupe::models
