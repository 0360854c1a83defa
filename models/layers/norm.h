#pragma once

#include <memory>
#include <utility>

#include "models/layer.h"

namespace troupe::models {

/// A layer that normalizes rows. Its kernels can include the sums of a residual stream
/// (residual_stream.h).
class Norm : public Layer {
 public:
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const final {
    Tensor unwanted;
    return backward_input_plus(in, std::move(dy), {}, unwanted, saved);
  }

  /// A sum, and the output for it.
  struct OfSum {
    Tensor sum, y;
  };
  /// Returns a + b in fp32, and forward() of it. b is in fp32.
  virtual OfSum forward_of_sum(const In& in, const Tensor& a, const Tensor& b,
                               SavedSpan saved) const = 0;

  /// Returns backward_input() + more. `more` is in fp32, or empty for nothing. Writes the result
  /// also to `rounded`, in 16 bits, unless that is empty.
  virtual Tensor backward_input_plus(const In& in, Tensor dy, const Tensor& more, Tensor& rounded,
                                     SavedSpan saved) const = 0;
};

using NormPtr = std::unique_ptr<const Norm>;

}  // namespace troupe::models
