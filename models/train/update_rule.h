#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/memory/stream.h"
#include "models/train/optimizer.h"

namespace troupe::models {

/// One parameter's step: from `weight` and `gradient` to `next`.
struct Update {
  const OptimizerConfig& config;
  const Parameter& parameter;
  std::int64_t step = 0;  // 0-based.
  double lr = 0;
  double gradient_scale = 1;
  const Tensor& weight;
  const Tensor& gradient;
  const Tensor& decay_share;  // Multiplies the weight decay; empty: all of it.
  int missed_steps = 0;       // That the gradient makes up for: spike compensation.
  Tensor& next;
  std::span<Tensor> moments;
};

/// A parameter after some steps, and the steps that are expected.
struct Outlook {
  const OptimizerConfig& config;
  std::int64_t steps_done = 0;
  std::span<const double> rates;  // Of the steps to come.
  const Tensor& phi;              // What is there of the first one's gradient; may be empty.
  StalenessOptions::SecondMoment second_moment = StalenessOptions::SecondMoment::guarded;
  const Tensor& weight;
  std::span<const Tensor> moments;  // All that the rule has.
};

/// How one kind of parameter is updated: data and functions, no state.
struct UpdateRule {
  /// What the rule keeps of the past, one tensor of the parameter's shape each: "m", "v".
  std::span<const std::string_view> moments;
  void (*apply)(Stream& stream, const Update& update);
  /// What the last step went along: times OptimizerConfig::stride of its learning rate, and weight
  /// decay beside the gradient aside, this was taken from the weights. Null where nobody knows.
  Tensor (*direction)(Stream& stream, const OptimizerConfig& config, std::int64_t steps_done,
                      std::span<const Tensor> moments) = nullptr;
  /// The weights after steps on gradients that are zero but for phi. Null where nobody knows.
  Tensor (*predict)(Stream& stream, const Outlook& outlook) = nullptr;
  /// How long the average of squared steps remembers.
  double (*spread_memory)(const OptimizerConfig& config) = nullptr;
  /// Whether it looks at a parameter as a whole; otherwise each element goes by itself.
  bool wants_whole = false;
};

/// The rule that the configuration means for this parameter.
const UpdateRule& rule_for(const OptimizerConfig& config, const StalenessOptions& staleness,
                           const Parameter& parameter);

/// v = momentum v + gradient; w -= lr v. With weight decay in the gradient, as PyTorch has it.
extern const UpdateRule sgd_rule;
extern const UpdateRule sgd_without_momentum_rule;
/// Adam; AdamW; and NAdamW, whose Nesterov momentum discounts the fresh gradient.
extern const UpdateRule adam_rule;
/// Momentum whose steps are made orthogonal: for hidden matrices.
extern const UpdateRule muon_rule;

/// base^exponent by squaring: equal on every machine, which the C library's pow is not.
double power(double base, std::int64_t exponent);

}  // namespace troupe::models
