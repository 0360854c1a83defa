#include <array>
#include <cassert>
#include <cmath>
#include <vector>

#include "kernels/late.h"
#include "models/arithmetic.h"
#include "models/train/update_rule.h"

namespace troupe::models {
namespace {

/// Factors of the first moment and of the gradient itself.
struct Scales {
  double moment = 1;
  double gradient = 0;
};

/// NAdam (Dozat 2016) in PyTorch's form. With mu_t = beta1 (1 - 0.96^(0.004 t) / 2), the moment's
/// factor is mu_{t+1} / (1 - mu_1 ... mu_{t+1}), the gradient's (1 - mu_t) / (1 - mu_1 ... mu_t).
Scales nadam_scales(double beta1, std::int64_t t) {
  constexpr double decay = 0.9998367253526753;  // 0.96^0.004
  double product = 1, power_of_decay = 1;
  // A product this small no longer changes 1 - product.
  for (std::int64_t i = 1; i <= t && product > 1e-20; ++i) {
    power_of_decay *= decay;
    product *= beta1 * (1 - 0.5 * power_of_decay);
  }
  const double mu = beta1 * (1 - 0.5 * power(decay, t));
  const double next = beta1 * (1 - 0.5 * power(decay, t + 1));
  return {next / (1 - product * next), (1 - mu) / (1 - product)};
}

kernels::WeightDecay decay_of(const OptimizerConfig& config) {
  return config.kind == OptimizerConfig::Kind::adam ? kernels::WeightDecay::coupled
                                                    : kernels::WeightDecay::decoupled;
}

void apply(Stream& stream, const Update& update) {
  const auto& config = update.config;
  const std::int64_t t = update.step + 1;
  const bool nadam = config.kind == OptimizerConfig::Kind::nadamw;
  const Scales scales =
      nadam ? nadam_scales(config.beta1, t) : Scales{.moment = 1 / (1 - power(config.beta1, t))};
  const kernels::AdamStep step{.lr = update.lr,
                               .beta1 = config.beta1,
                               .beta2 = config.beta2,
                               .eps = config.eps,
                               .weight_decay = config.weight_decay,
                               .gradient_scale = update.gradient_scale,
                               .m_scale = scales.moment,
                               .g_scale = scales.gradient,
                               .v_scale = 1 / std::sqrt(1 - power(config.beta2, t)),
                               .decay = decay_of(config)};
  with_number(update.weight.dtype(), [&]<class T>(T) {
    const T* share = update.decay_share.empty() ? nullptr : update.decay_share.data<T>();
    kernels::adam_step(stream, step, update.weight.data<T>(), update.gradient.data<T>(),
                       update.moments[0].data<T>(), update.moments[1].data<T>(),
                       update.next.data<T>(), update.weight.count(), share);
  });
}

double m_scale(const OptimizerConfig& config, std::int64_t t) {
  return 1 / (1 - power(config.beta1, t));
}
double v_scale(const OptimizerConfig& config, std::int64_t t) {
  return 1 / std::sqrt(1 - power(config.beta2, t));
}

Tensor direction(Stream& stream, const OptimizerConfig& config, std::int64_t steps_done,
                 std::span<const Tensor> moments) {
  assert(config.kind != OptimizerConfig::Kind::nadamw && "its last step took the gradient as well");
  const kernels::AdamDirection scales{.m_scale = m_scale(config, steps_done),
                                      .v_scale = v_scale(config, steps_done),
                                      .eps = config.eps};
  Tensor along = stream.make(moments[0].shape(), moments[0].dtype());
  with_number(along.dtype(), [&]<class T>(T) {
    kernels::adam_direction(stream, scales, moments[0].data<T>(), moments[1].data<T>(),
                            along.data<T>(), along.count());
  });
  return along;
}

Tensor predict(Stream& stream, const Outlook& outlook) {
  using Frozen = kernels::AdamForecast::SecondMoment;
  const auto& config = outlook.config;
  std::vector<kernels::AdamForecast::Step> steps;
  std::int64_t t = outlook.steps_done;
  for (const double rate : outlook.rates) {
    ++t;
    steps.push_back({.lr = rate, .m_scale = m_scale(config, t), .v_scale = v_scale(config, t)});
  }
  const bool is_frozen = outlook.second_moment == StalenessOptions::SecondMoment::frozen;
  const kernels::AdamForecast forecast{
      .steps = steps,
      .beta1 = config.beta1,
      .beta2 = config.beta2,
      .eps = config.eps,
      .weight_decay = config.weight_decay,
      .decay = decay_of(config),
      .second_moment = is_frozen ? Frozen::frozen : Frozen::guarded};
  const Tensor zero = outlook.moments.empty()
                          ? filled(stream, outlook.weight.shape(), outlook.weight.dtype(), 0)
                          : Tensor();
  const Tensor& m = outlook.moments.empty() ? zero : outlook.moments[0];
  const Tensor& v = outlook.moments.empty() ? zero : outlook.moments[1];
  Tensor next = stream.make(outlook.weight.shape(), outlook.weight.dtype());
  with_number(next.dtype(), [&]<class T>(T) {
    kernels::adam_forecast(stream, forecast, outlook.weight.data<T>(), m.data<T>(), v.data<T>(),
                           outlook.phi.empty() ? nullptr : outlook.phi.data<T>(), next.data<T>(),
                           next.count());
  });
  return next;
}

double spread_memory(const OptimizerConfig& config) { return config.beta2; }

constexpr std::array<std::string_view, 2> moments{"m", "v"};

}  // namespace

const UpdateRule adam_rule{moments, apply, direction, predict, spread_memory};

}  // namespace troupe::models
