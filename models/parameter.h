#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/memory/tensor.h"
#include "kernels/linear.h"
#include "models/loss_scale.h"

namespace troupe::models {

/// What a parameter is before the first step.
struct Init {
  enum class Kind : std::uint8_t { zeros, ones, normal, uniform };
  Kind kind = Kind::zeros;
  float scale = 0;  // The standard deviation, or the bound on both sides.

  static Init zeros() { return {Kind::zeros, 0}; }
  static Init ones() { return {Kind::ones, 0}; }
  static Init normal(double deviation) { return {Kind::normal, static_cast<float>(deviation)}; }
  /// Uniform within 1 / sqrt(inputs) of zero, as PyTorch's linear layers start.
  static Init by_inputs(std::int64_t inputs);
};

/// A trained tensor as a layer declares it. Two layers that declare the same name share it: it is
/// tied.
struct Parameter {
  /// A matrix is packed for products, once for each version.
  enum class Use : std::uint8_t { elements, matrix };
  /// At an edge of the model it meets tokens, pixels or classes: optimizers for hidden matrices
  /// leave it to others.
  enum class Place : std::uint8_t { hidden, edge };

  std::string name;  // As the model's ecosystem has it: "h.0.attn.c_attn.weight".
  Shape shape;
  Init init = Init::zeros();
  Use use = Use::elements;
  Place place = Place::hidden;
  kernels::WeightLayout layout = kernels::WeightLayout::out_in;  // Of a matrix.
  DType type = DType::f32;                                       // Or f64, for elements.
  std::int64_t first = 0;  // Of a piece of one: where it begins, at a block of sums.
};

/// A matrix as products see it. What lies beyond its first dimension counts as one dimension, so
/// that the weights of a convolution can be a matrix.
kernels::LinearShape linear_shape(const Parameter& matrix, kernels::Precision precision);

/// A tensor that training changes, but no gradient: the running statistics of a batch norm. Each
/// micro-batch moves it by `share` of the way to its own statistic.
struct Buffer {
  std::string name;
  Shape shape;
  float initial = 0;
  float share = 0.1f;
};

/// A parameter's numbers in one version, as layers see them.
struct Weight {
  Tensor value;
  kernels::PackedLinear packed;  // Of a matrix.
};

/// One version of a stage's weights: never changed once it is published. Who needs an old version
/// holds it.
struct Weights {
  std::int64_t version = 0;     // How many steps made it.
  std::vector<Weight> slots;    // One for each parameter that a layer declares, in order.
  std::vector<Tensor> buffers;  // Likewise.
  LossScale loss_scale;         // Of gradients that these weights give.

  /// How many of those steps changed the weights.
  std::int64_t updates() const { return version - loss_scale.skipped_steps; }
};
using WeightsPtr = std::shared_ptr<const Weights>;

}  // namespace troupe::models
