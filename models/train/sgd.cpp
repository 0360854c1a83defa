#include <array>

#include "models/arithmetic.h"
#include "models/train/update_rule.h"

namespace troupe::models {
namespace {

using kernels::SgdStep;

/// Kosson et al. 2021: a gradient that is D steps late adds at once the moves that its momentum
/// would have made in the meantime.
void make_up(SgdStep& step, int missed_steps) {
  double share = 1, sum = 0;
  for (int i = 0; i < missed_steps; ++i) {
    sum += share;
    share *= step.momentum;
  }
  step.kind = SgdStep::Momentum::shares;
  step.momentum_share = share;
  step.gradient_share = sum;
}

void apply(Stream& stream, const Update& update) {
  const auto& config = update.config;
  SgdStep step{.lr = update.lr,
               .momentum = config.momentum,
               .weight_decay = config.weight_decay,
               .gradient_scale = update.gradient_scale,
               .kind = config.nesterov ? SgdStep::Momentum::nesterov : SgdStep::Momentum::plain,
               .turn = update.step == 0 ? SgdStep::Turn::first : SgdStep::Turn::later};
  if (config.momentum_form == OptimizerConfig::MomentumForm::sutskever) {
    step.gradient_scale *= step.lr;
    step.weight_decay *= step.lr;
    step.lr = 1;
  }
  if (update.missed_steps > 0) make_up(step, update.missed_steps);
  with_number(update.weight.dtype(), [&]<class T>(T) {
    T* momentum = update.moments.empty() ? nullptr : update.moments[0].data<T>();
    const T* share = update.decay_share.empty() ? nullptr : update.decay_share.data<T>();
    kernels::sgd_step(stream, step, update.weight.data<T>(), update.gradient.data<T>(), momentum,
                      update.next.data<T>(), update.weight.count(), share);
  });
}

Tensor direction(Stream& /*stream*/, const OptimizerConfig& /*config*/, std::int64_t /*steps_done*/,
                 std::span<const Tensor> moments) {
  return moments[0];
}

/// The factors of w, v and phi in a weight after some steps. A step is linear in them: g = [first]
/// phi + decay w; v <- mu v + g; w <- w - lr v, or with Nesterov w - lr (g + mu v).
struct Linear {
  double w = 0, v = 0, phi = 0;

  void add(double factor, const Linear& other) {
    w += factor * other.w;
    v += factor * other.v;
    phi += factor * other.phi;
  }
};

Linear where_steps_lead(const Outlook& outlook) {
  const auto& config = outlook.config;
  const bool is_inside = config.momentum_form == OptimizerConfig::MomentumForm::sutskever;
  Linear weight{.w = 1}, momentum{.v = 1};
  double fresh = 1;
  for (const double rate : outlook.rates) {
    const double stride = config.stride(rate), inside = is_inside ? rate : 1;
    Linear gradient{.phi = inside * fresh};
    gradient.add(inside * config.weight_decay, weight);
    Linear moved = gradient;
    moved.add(config.momentum, momentum);
    momentum = moved;
    weight.add(-stride * (config.nesterov ? config.momentum : 1), momentum);
    if (config.nesterov) weight.add(-stride, gradient);
    fresh = 0;
  }
  return weight;
}

Tensor predict(Stream& stream, const Outlook& outlook) {
  const Linear lead = where_steps_lead(outlook);
  const Tensor& v = outlook.moments.empty() ? outlook.weight : outlook.moments[0];
  Tensor next = combined(stream, lead.w, outlook.weight, outlook.moments.empty() ? 0 : lead.v, v);
  if (!outlook.phi.empty()) combine(stream, 1, next, lead.phi, outlook.phi, next);
  return next;
}

double spread_memory(const OptimizerConfig& /*config*/) { return 0.999; }

constexpr std::array<std::string_view, 1> momentum{"momentum"};

}  // namespace

const UpdateRule sgd_rule{momentum, apply, direction, predict, spread_memory};
const UpdateRule sgd_without_momentum_rule{
    .moments = {}, .apply = apply, .predict = predict, .spread_memory = spread_memory};

}  // namespace troupe::models
