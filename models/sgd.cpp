#include <array>

#include "kernels/steps.h"
#include "models/update_rule.h"

namespace troupe::models {
namespace {

void apply(Stream& stream, const Update& update) {
  const auto& config = update.config;
  const kernels::SgdStep step{
      .lr = update.lr(),
      .momentum = config.momentum,
      .weight_decay = config.weight_decay,
      .gradient_scale = update.gradient_scale,
      .kind = config.nesterov ? kernels::SgdStep::Momentum::nesterov
                              : kernels::SgdStep::Momentum::plain,
      .turn = update.step == 0 ? kernels::SgdStep::Turn::first : kernels::SgdStep::Turn::later};
  float* momentum = update.moments.empty() ? nullptr : update.moments[0].f32();
  kernels::sgd_step(stream, step, update.weight.f32(), update.gradient.f32(), momentum,
                    update.next.f32(), update.weight.count());
}

constexpr std::array<std::string_view, 1> momentum{"momentum"};

}  // namespace

const UpdateRule sgd_rule{momentum, apply};
const UpdateRule sgd_without_momentum_rule{{}, apply};

}  // namespace troupe::models
