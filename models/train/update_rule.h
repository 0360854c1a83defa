#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/memory/stream.h"
#include "models/train/optimizer.h"

namespace troupe::models {

/// One step of one parameter: computes `next` from `weight` and `gradient`.
struct Update {
  const OptimizerConfig& config;
  const Parameter& parameter;
  std::int64_t step = 0;  // 0-based.
  double lr = 0;
  double gradient_scale = 1;
  const Tensor& weight;
  const Tensor& gradient;
  const Tensor& decay_share;  // Multiplies weight decay; empty: 1.
  int missed_steps = 0;       // The steps that spike compensation makes up for.
  Tensor& next;
  std::span<Tensor> moments;
};

/// A parameter after some steps, and the expected steps.
struct Outlook {
  const OptimizerConfig& config;
  std::int64_t steps_done = 0;
  std::span<const double> rates;  // The learning rates of the steps to come.
  const Tensor& phi;              // The first step's gradient so far; may be empty.
  StalenessOptions::SecondMoment second_moment = StalenessOptions::SecondMoment::guarded;
  const Tensor& weight;
  std::span<const Tensor> moments;  // All moments of the rule.
};

/// How one kind of parameter is updated: data and functions, no state.
struct UpdateRule {
  /// The names of the rule's moments, each a tensor of the parameter's shape: "m", "v".
  std::span<const std::string_view> moments;
  void (*apply)(Stream& stream, const Update& update);
  /// Returns the last step's direction: the step subtracted stride(lr) times it from the weights,
  /// apart from decoupled weight decay. Null if the moments do not contain it.
  Tensor (*direction)(Stream& stream, const OptimizerConfig& config, std::int64_t steps_done,
                      std::span<const Tensor> moments) = nullptr;
  /// Predicts the weights after steps whose gradients are zero, except for phi. Null if unknown.
  Tensor (*predict)(Stream& stream, const Outlook& outlook) = nullptr;
  /// Returns the decay factor of the average of squared steps.
  double (*spread_memory)(const OptimizerConfig& config) = nullptr;
  /// Whether the rule needs a parameter as a whole. Other rules treat each element by itself.
  bool wants_whole = false;
};

/// Returns the rule that the configuration selects for this parameter.
const UpdateRule& rule_for(const OptimizerConfig& config, const StalenessOptions& staleness,
                           const Parameter& parameter);

/// v = momentum v + gradient; w -= lr v. The gradient includes weight decay, as in PyTorch.
extern const UpdateRule sgd_rule;
extern const UpdateRule sgd_without_momentum_rule;
/// Adam, AdamW and NAdamW, whose Nesterov momentum discounts the fresh gradient.
extern const UpdateRule adam_rule;
/// Momentum with orthogonalized steps, for hidden matrices.
extern const UpdateRule muon_rule;

/// Returns base^exponent by squaring, with equal bits on every machine, unlike the C library's pow.
double power(double base, std::int64_t exponent);

}  // namespace troupe::models
