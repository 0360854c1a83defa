#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "kernels/linear.h"

namespace troupe::models {

/// What a parameter is before the first step.
struct Init {
  enum class Kind { zeros, ones, normal, uniform };
  Kind kind = Kind::zeros;
  float scale = 0;  // The standard deviation, or the bound on both sides.

  static Init zeros() { return {Kind::zeros, 0}; }
  static Init ones() { return {Kind::ones, 0}; }
  static Init normal(float deviation) { return {Kind::normal, deviation}; }
  static Init uniform(float bound) { return {Kind::uniform, bound}; }
};

/// A trained tensor as a layer declares it. Two layers that declare the same name share it: it is
/// tied.
struct Parameter {
  /// A matrix is packed for products, once for each version.
  enum class Use { elements, matrix };

  std::string name;  // As the model's ecosystem has it: "h.0.attn.c_attn.weight".
  Shape shape;
  Init init;
  Use use = Use::elements;
  kernels::WeightLayout layout = kernels::WeightLayout::out_in;  // Of a matrix.
};

/// A tensor that training changes, but no gradient: the running statistics of a batch norm.
struct Buffer {
  std::string name;
  Shape shape;
  float initial = 0;
};

/// A parameter's numbers in one version, as layers see them.
struct Weight {
  Tensor value;
  kernels::PackedLinear packed;  // Of a matrix.
};

/// One version of a stage's weights: never changed once it is published. Who needs an old version
/// holds it.
struct Weights {
  std::int64_t version = 0;  // How many steps made it.
  std::vector<Weight>
      slots;  // One for each parameter that a layer of the stage declares, in order.
  std::vector<Tensor> buffers;  // Likewise.
};
using WeightsPtr = std::shared_ptr<const Weights>;

}  // namespace troupe::models
