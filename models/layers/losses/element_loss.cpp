#include "models/layers/losses/element_loss.h"

#include <cassert>
#include <utility>

#include "kernels/between_layers.h"

namespace troupe::models {

Tensor ElementLoss::forward(const In& in, Tensor z, SavedSpan saved, SavedSpan) const {
  assert(in.pass.targets.count() == z.count());
  Tensor losses = in.pass.stream.make({z.count()});
  // The layer before may have saved z, so the gradient has memory of its own.
  Tensor dz;
  if (in.pass.mode == Mode::training) dz = in.pass.stream.make(z.shape(), z.dtype());
  kernels::element_losses(in.pass.stream, loss_, z, in.pass.targets, losses, dz,
                          in.pass.loss_gradient);
  saved[0] = std::move(dz);
  return losses;
}

Tensor ElementLoss::backward_input(const In&, Tensor, SavedSpan saved) const {
  return std::exchange(saved[0], {});
}

}  // namespace troupe::models
