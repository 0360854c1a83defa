#include <array>
#include <cmath>

#include "kernels/steps.h"
#include "models/update_rule.h"

namespace troupe::models {
namespace {

/// By squaring: equal on every machine, which the C library's pow is not.
double power(double base, std::int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base)
    if (exponent % 2 == 1) result *= base;
  return result;
}

/// What multiplies the first moment and the gradient itself.
struct Scales {
  double moment = 1;
  double gradient = 0;
};

/// NAdam (Dozat 2016) as PyTorch has it: with mu_t = beta1 (1 - 0.96^(0.004 t) / 2), the moment
/// counts mu_{t+1} / (1 - mu_1 ... mu_{t+1}) and the gradient (1 - mu_t) / (1 - mu_1 ... mu_t).
Scales nadam_scales(double beta1, std::int64_t t) {
  constexpr double decay = 0.9998367253526753;  // 0.96^0.004
  double product = 1, power_of_decay = 1;
  // From some factor on, the product is too small to change 1 - product.
  for (std::int64_t i = 1; i <= t && product > 1e-20; ++i) {
    power_of_decay *= decay;
    product *= beta1 * (1 - 0.5 * power_of_decay);
  }
  const double mu = beta1 * (1 - 0.5 * power(decay, t));
  const double next = beta1 * (1 - 0.5 * power(decay, t + 1));
  return {next / (1 - product * next), (1 - mu) / (1 - product)};
}

void apply(Stream& stream, const Update& update) {
  const auto& config = update.config;
  const std::int64_t t = update.step + 1;
  const bool nadam = config.kind == OptimizerConfig::Kind::nadamw;
  const Scales scales =
      nadam ? nadam_scales(config.beta1, t) : Scales{.moment = 1 / (1 - power(config.beta1, t))};
  const kernels::AdamStep step{.lr = update.lr(),
                               .beta1 = config.beta1,
                               .beta2 = config.beta2,
                               .eps = config.eps,
                               .weight_decay = config.weight_decay,
                               .gradient_scale = update.gradient_scale,
                               .m_scale = scales.moment,
                               .g_scale = scales.gradient,
                               .v_scale = 1 / std::sqrt(1 - power(config.beta2, t)),
                               .decay = config.kind == OptimizerConfig::Kind::adam
                                            ? kernels::WeightDecay::coupled
                                            : kernels::WeightDecay::decoupled};
  kernels::adam_step(stream, step, update.weight.f32(), update.gradient.f32(),
                     update.moments[0].f32(), update.moments[1].f32(), update.next.f32(),
                     update.weight.count());
}

constexpr std::array<std::string_view, 2> moments{"m", "v"};

}  // namespace

const UpdateRule adam_rule{moments, apply};

}  // namespace troupe::models
