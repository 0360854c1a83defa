#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/integer_bounds.h"
#include "core/memory/dtype.h"
#include "core/memory/shape.h"
#include "core/memory/tensor.h"

namespace troupe::models {

struct Model;

/// A value that steps behind the next ones read: one that a unit keeps, such as the skips of a
/// U-Net, or an input of the model behind the first one. Its number is its place in Model::kept,
/// which has inputs in the order of declaration, and then the others in the order of making.
struct KeptValue {
  /// As the unit that makes an input, which is there before unit 0.
  static constexpr int before_units = -1;

  std::string name;
  int made = 0;   // The unit that keeps it, or before_units.
  int first = 0;  // The first unit that reads it.
  int last = 0;   // The last one.
  DType type = DType::f32;
  bool has_gradient = true;  // Integers have none, and neither have the model's inputs.
  IntegerBounds bounds = {};

  bool is_input() const { return made == before_units; }
};

/// The tensors that cross a cut between stages: the stream, and the kept values that units behind
/// the cut read, in the order of their making. On the way back it has the gradients of the stream
/// and of the values that have one, or nothing if no gradient is wanted. A bundle of the stream
/// alone allocates nothing.
struct Bundle {
  Tensor stream;
  std::vector<Tensor> kept;

  Bundle() = default;
  Bundle(Tensor tensor) : stream(std::move(tensor)) {}  // NOLINT(google-explicit-constructor)

  bool empty() const { return stream.empty() && kept.empty(); }
};

/// The kept values of a micro-batch while a pass goes through the units of a stage, indexed by
/// number. A forward pass has values, a backward pass has gradients. The gradient of a value is a
/// left fold from its last reader to its first. Cuts hand the sum on, so no cut changes a bit.
struct Frame {
  std::vector<Tensor> values;
  std::vector<Tensor> gradients;
};

/// The shapes of the kept values so far, indexed by number.
using KeptShapes = std::vector<Shape>;

/// Returns the numbers of the kept values that cross a cut before this unit.
std::vector<int> kept_across(const Model& model, int unit);
/// Returns those of them that have a gradient.
std::vector<int> gradients_across(const Model& model, int unit);

/// The shape and type of one tensor of a bundle.
struct BundlePart {
  std::string name;  // Empty: the stream.
  Shape shape;
  DType type = DType::f32;
  bool has_gradient = true;
  IntegerBounds bounds = {};
};

/// Returns the parts of the bundle that each unit receives, the stream first. The first unit
/// receives the inputs, the first of which is [batch, ...]. Behind the last unit's there is one
/// more: the output.
std::vector<std::vector<BundlePart>> bundles_of(const Model& model, const Shape& input);

}  // namespace troupe::models
