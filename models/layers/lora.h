#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/layer.h"
#include "models/layers/dropout.h"
#include "models/layers/projection.h"

namespace troupe::models {

/// The matrices that get a low-rank addition (LoRA): y = x W + (alpha / rank) (dropout(x) A) B.
/// Only A and B are trained.
struct Lora {
  std::int64_t rank = 0;
  double alpha = 0;
  double rate = 0;                 // The rate of dropout.
  std::vector<std::string> match;  // Patterns over names: "*.c_attn".

  double scale() const { return alpha / static_cast<double>(rank); }
  bool matches(std::string_view name) const;
};

/// Returns whether a parameter is an A or a B.
bool is_of_lora(std::string_view parameter);

/// The additions of a layer's projections. A layer has one, asks it in each pass, and declares its
/// parameters behind its own. Projections that got no addition are left as they are.
class Additions {
 public:
  /// `matrices` are the layer's projections, in the order of `projection` below. The parameters of
  /// the additions begin with the layer's parameter `first`.
  Additions(std::initializer_list<const Projection*> matrices, std::size_t first);

  bool has(std::size_t projection) const { return additions_[projection].has_value(); }
  void declare(std::vector<Parameter>& parameters) const;
  void add_work(const Shape& input, std::size_t projection, Work& work) const;

  /// Adds to the projection's output y, in y's type. `x` is the operand of the projection.
  void forward(const Layer::In& in, std::size_t projection, const Tensor& x, Tensor& y) const;
  /// Computes dx += the addition's share of the input's gradient in fp32. `dy` is an operand.
  void backward_input(const Layer::In& in, std::size_t projection, const Tensor& dy,
                      Tensor& dx) const;
  /// Adds to the gradients of A and B in the layer's `gradients`.
  void backward_weight(const Layer::In& in, std::size_t projection, const Tensor& x,
                       const Tensor& dy, Layer::SavedSpan gradients) const;

 private:
  struct Addition {
    Projection a, b;
    double scale = 1;
    double rate = 0;
    Dropout dropout;
    std::size_t first = 0;  // The layer's parameter that is A. B follows.
  };
  Tensor scaled_operand(const Layer::In& in, const Addition& addition, const Tensor& small) const;
  Tensor dropped(const Layer::In& in, const Addition& addition, const Tensor& x) const;
  Tensor inner(const Layer::In& in, const Addition& addition, const Tensor& x) const;
  Tensor inner_gradient(const Layer::In& in, const Addition& addition, const Tensor& dy) const;

  std::vector<std::optional<Addition>> additions_;  // One for each projection.
};

}  // namespace troupe::models
