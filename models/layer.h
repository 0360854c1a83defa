#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/memory/stream.h"
#include "core/memory/tensor.h"
#include "core/random.h"
#include "models/parameter.h"
#include "models/work.h"

namespace troupe::models {

enum class Mode : std::uint8_t { training, evaluation };

/// What a layer is told about the micro-batch that passes through.
struct Pass {
  Stream& stream;
  Mode mode = Mode::training;
  kernels::Precision precision = kernels::Precision::fp32;
  RandomKey key;   // Of the micro-batch's first sample; a layer that draws sets `operation`.
  Tensor targets;  // For the loss.
  /// The gradient of each target's loss: what it counts in the step, which is 1 / targets, times
  /// the loss scale.
  float loss_gradient = 1;
};

/// Whether the input wants a gradient: data does not.
enum class InputGradient : std::uint8_t { wanted, unwanted };

/// A piece of a model, as functions: it owns no numbers and changes none. Weights and input come
/// in; the output, and what the backward pass needs, go out. The spans that a layer gets are as
/// long as it declared.
///
/// What it gives, an output or a gradient, is in fp32 or in the precision's activation_type(),
/// which on tensor cores has 16 bits; it takes either. What is given from stage to stage is in
/// fp32.
///
/// What is saved: `forward` fills `saved`. `backward_input` reads it, and leaves in it what
/// `backward_weight` needs and nothing more; `backward_weight` empties it. Each runs once, in this
/// order, perhaps long after one another and with other micro-batches in between. Evaluation throws
/// away what is saved.
class Layer {
 public:
  using WeightSpan = std::span<const Weight>;
  using BufferSpan = std::span<const Tensor>;
  using SavedSpan = std::span<Tensor>;

  virtual ~Layer() = default;

  virtual std::vector<Parameter> parameters() const { return {}; }
  virtual std::vector<Buffer> buffers() const { return {}; }
  /// How many tensors it saves.
  virtual int saved() const { return 0; }
  /// What comes out for an input of this shape; the outermost dimension is the batch. For planning.
  virtual Shape output(const Shape& input) const { return input; }
  /// What its passes over such an input do; about right, for planning.
  virtual Work work(const Shape& input) const {
    return elementwise_work(input, output(input),
                            parameters().empty() ? Trained::no : Trained::yes);
  }

  struct In {
    const Pass& pass;
    WeightSpan weights;
    BufferSpan buffers;
    InputGradient input_gradient = InputGradient::wanted;
  };

  /// `statistics` has a place for each buffer: what this micro-batch contributes to it, in
  /// training.
  virtual Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const = 0;

  /// The gradient of the input; empty where it is not wanted, and for tokens, which have none.
  virtual Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const = 0;

  /// Adds to the gradients, one for each parameter. That of a matrix may still be empty, and is
  /// then made. Without parameters there is nothing to do.
  virtual void backward_weight(const In& /*in*/, SavedSpan /*saved*/,
                               SavedSpan /*gradients*/) const {}
};

using LayerPtr = std::unique_ptr<const Layer>;

}  // namespace troupe::models
