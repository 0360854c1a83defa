#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/stream.h"
#include "models/optimizer.h"

namespace troupe::models {

/// One parameter's step: from `weight` and `gradient` to `next`.
struct Update {
  const OptimizerConfig& config;
  const Parameter& parameter;
  std::int64_t step = 0;  // 0-based.
  double gradient_scale = 1;
  const Tensor& weight;
  const Tensor& gradient;
  Tensor& next;
  std::span<Tensor> moments;

  double lr() const { return config.rate.at(step); }
};

/// How one kind of parameter is updated: data and a function, no state.
struct UpdateRule {
  /// What the rule keeps of the past, one tensor of the parameter's shape each: "m", "v".
  std::span<const std::string_view> moments;
  void (*apply)(Stream& stream, const Update& update);
};

/// The rule that the configuration means for this parameter.
const UpdateRule& rule_for(const OptimizerConfig& config, const Parameter& parameter);

/// v = momentum v + gradient; w -= lr v. With weight decay in the gradient, as PyTorch has it.
extern const UpdateRule sgd_rule;
extern const UpdateRule sgd_without_momentum_rule;
/// Adam; AdamW; and NAdamW, whose Nesterov momentum discounts the fresh gradient.
extern const UpdateRule adam_rule;
/// Momentum whose steps are made orthogonal: for hidden matrices.
extern const UpdateRule muon_rule;

}  // namespace troupe::models
