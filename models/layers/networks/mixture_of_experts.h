#pragma once

#include <vector>

#include "kernels/experts.h"
#include "models/layer.h"
#include "models/layers/networks/gates.h"
#include "models/layers/projection.h"

namespace troupe::models {

/// A mixture of gated feed-forward networks, the experts. A router in fp32 sends each row to the
/// `top` experts that it prefers: y = the sum over these of weight * down(f(x gate) * (x up)).
///
/// The router has losses of its own, which only its gradient shows. They are of one layer and one
/// micro-batch, and weigh as much as the targets of the micro-batch that count.
class MixtureOfExperts final : public Layer {
 public:
  struct Expert {
    Parameter gate, up, down;
  };
  struct Form {
    Gate gate = Gate::silu;
    std::int64_t top = 1;
    bool renormalise = false;
    kernels::RouterLosses losses = {};
  };
  /// `router` is [experts, width], and no matrix: it is never rounded. All experts have one shape.
  MixtureOfExperts(Parameter router, const std::vector<Expert>& experts, const Form& form);

  std::vector<Parameter> parameters() const override;
  int saved() const override { return all_saved; }
  Reach reach() const override { return Reach::own_row; }
  Work work(const Shape& input) const override;
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override;

 private:
  // backward_input replaces gate, up and rows by the operands of their gradients.
  enum Saved {
    input,
    probabilities,
    logsumexp,
    chosen,
    weights,
    places,
    tokens,
    bounds,
    gate,
    up,
    hidden,
    rows,
    dlogits,
    all_saved
  };
  enum Part { gate_part, up_part, down_part, parts };

  std::int64_t count() const { return static_cast<std::int64_t>(experts_.size()) / parts; }
  std::int64_t width() const { return router_.shape[1]; }
  const Projection& projection(Part part) const { return experts_[part]; }
  kernels::RouterShape router_shape(std::int64_t rows) const;
  static kernels::Routes routes_of(SavedSpan saved);
  std::vector<const kernels::PackedLinear*> matrices(const In& in, Part part) const;
  Tensor through(const In& in, Part part, const Tensor& bounds, const Tensor& x) const;
  Tensor back_through(const In& in, Part part, const Tensor& bounds, const Tensor& dy) const;
  Tensor gathered(const In& in, SavedSpan saved) const;
  void add_gradients(const In& in, Part part, const Tensor& bounds, const Tensor& x,
                     const Tensor& dy, SavedSpan gradients) const;

  Parameter router_;
  std::vector<Projection> experts_;  // Expert by expert: gate, up, down.
  Form form_;
};

}  // namespace troupe::models
