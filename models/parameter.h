#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/memory/tensor.h"
#include "kernels/linear.h"
#include "models/loss_scale.h"

namespace troupe::models {

/// How a parameter is initialized.
struct Init {
  enum class Kind : std::uint8_t { zeros, ones, normal, uniform };
  Kind kind = Kind::zeros;
  float scale = 0;  // The standard deviation, or the bound on both sides.

  static Init zeros() { return {Kind::zeros, 0}; }
  static Init ones() { return {Kind::ones, 0}; }
  static Init normal(double deviation) { return {Kind::normal, static_cast<float>(deviation)}; }
  /// Returns the default of PyTorch's linear layers: uniform within 1 / sqrt(inputs) of zero.
  static Init by_inputs(std::int64_t inputs);
};

/// A trained tensor as a layer declares it. Two layers that declare the same name share the tensor:
/// it is tied.
struct Parameter {
  /// Whether products need the parameter as a matrix. Each version of a matrix is packed once.
  enum class Use : std::uint8_t { elements, matrix };
  /// Edge parameters meet tokens, pixels or classes. Optimizers for hidden matrices (Muon) leave
  /// them to another rule.
  enum class Place : std::uint8_t { hidden, edge };

  std::string name;  // The name in public checkpoints of this model: "h.0.attn.c_attn.weight".
  Shape shape;
  Init init = Init::zeros();
  Use use = Use::elements;
  Place place = Place::hidden;
  kernels::WeightLayout layout = kernels::WeightLayout::out_in;  // For matrices.
  DType type = DType::f32;                                       // Or f64, for elements only.
  /// For a piece of a parameter: its first element, a multiple of kernels::block_of_sums.
  std::int64_t first = 0;
  /// Whether training leaves it as it is. It has no gradient and no moments.
  bool frozen = false;
  /// For the matrix of a projection: the rank of its low-rank addition (models/layers/lora.h), the
  /// factor on it, and its rate of dropout. Rank 0: none.
  std::int64_t lora_rank = 0;
  double lora_scale = 1;
  double lora_rate = 0;
  /// The share of rows that are multiplied with it. Below 1 for matrices of experts.
  double share_of_rows = 1;
};

/// Returns the matrix shape that products use. All dimensions behind the first count as one, so
/// that the weights of a convolution can be a matrix.
kernels::LinearShape linear_shape(const Parameter& matrix, kernels::Precision precision);

/// A tensor that training changes without a gradient, like the running statistics of a batch norm.
/// Each micro-batch moves it by `share` of the way to its own statistic.
struct Buffer {
  std::string name;
  Shape shape;
  float initial = 0;
  float share = 0.1f;
};

/// The numbers of a parameter in one version, in the form that layers read.
struct Weight {
  Tensor value;
  kernels::PackedLinear packed;  // For matrices only.
};

/// One version of a stage's weights. It never changes once it is published. A pass that needs an
/// old version holds its pointer.
struct Weights {
  std::int64_t version = 0;     // The number of steps that made it.
  std::vector<Weight> slots;    // One for each parameter that a layer declares, in order.
  std::vector<Tensor> buffers;  // One for each buffer that a layer declares, in order.
  LossScale loss_scale;         // The scale of gradients that passes over these weights produce.

  /// Returns how many steps changed the weights. Skipped steps did not.
  std::int64_t updates() const { return version - loss_scale.skipped_steps; }
};
using WeightsPtr = std::shared_ptr<const Weights>;

}  // namespace troupe::models
