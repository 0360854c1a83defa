#include "models/train/update_rule.h"

namespace troupe::models {
namespace {

bool is_hidden_matrix(const Parameter& parameter) {
  return parameter.use == Parameter::Use::matrix && parameter.place == Parameter::Place::hidden;
}

/// Returns whether a policy reads the last step's direction. sgd without momentum does not keep it.
bool looks_back(const StalenessOptions& staleness) {
  return staleness.predict == StalenessOptions::Predict::linear || measures_gaps(staleness);
}

}  // namespace

const UpdateRule& rule_for(const OptimizerConfig& config, const StalenessOptions& staleness,
                           const Parameter& parameter) {
  switch (config.kind) {
    case OptimizerConfig::Kind::sgd:
      return config.momentum == 0 && !looks_back(staleness) ? sgd_without_momentum_rule : sgd_rule;
    case OptimizerConfig::Kind::adam:
    case OptimizerConfig::Kind::adamw:
    case OptimizerConfig::Kind::nadamw:
      return adam_rule;
    case OptimizerConfig::Kind::muon:
      return is_hidden_matrix(parameter) ? muon_rule : adam_rule;
  }
  return adam_rule;
}

double power(double base, std::int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base)
    if (exponent % 2 == 1) result *= base;
  return result;
}

OptimizerConfig OptimizerConfig::of(Kind kind) {
  OptimizerConfig config;
  config.kind = kind;
  config.weight_decay = 0;
  switch (kind) {
    case Kind::sgd:
    case Kind::adam:
      break;
    case Kind::adamw:
      config.weight_decay = 0.01;
      break;
    case Kind::nadamw:
      config.rate.lr = 2e-3;
      break;
    case Kind::muon:
      config.momentum = 0.95;
      config.nesterov = true;
      config.weight_decay = 0.1;
      break;
  }
  return config;
}

}  // namespace troupe::models
