#include "models/training_stage.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace troupe::models {

TrainingStage::TrainingStage(const Model& model, UnitRange units, const StageOptions& options,
                             const StalenessOptions& /*staleness*/,
                             const OptimizerConfig& /*optimizer*/,
                             std::vector<std::string> borrowed)
    : stage_(model, units, options), borrowed_(std::move(borrowed)) {}

void TrainingStage::begin_round(Round round) {
  assert(stage_.in_flight() == 0);
  round_ = std::move(round);
  stage_.begin_step(round_.share, round_.targets_in_step);
}

void TrainingStage::adopt(Version newest) { newest_ = std::move(newest); }

Tensor TrainingStage::forward(Stream& stream, const MicroBatch& m, Tensor input, Tensor targets,
                              std::span<const Loan> loans) {
  assert(loans.size() == borrowed_.size());
  return stage_.forward(stream, m, *newest_.weights, std::move(input), std::move(targets));
}

void TrainingStage::recompute(Stream& stream, int m) {
  stage_.recompute(stream, m, *newest_.weights);
}

Tensor TrainingStage::backward_input(Stream& stream, int m, Tensor dy) {
  return stage_.backward_input(stream, m, *newest_.weights, std::move(dy));
}

void TrainingStage::backward_weight(Stream& stream, int m) {
  stage_.backward_weight(stream, m, *newest_.weights);
}

Tensor TrainingStage::backward(Stream& stream, int m, Tensor dy) {
  return stage_.backward(stream, m, *newest_.weights, std::move(dy));
}

Loan TrainingStage::lend(int /*m*/, const std::string& name) const {
  const auto& parameters = stage_.parameters();
  const auto found = std::ranges::find(parameters, name, &Parameter::name);
  assert(found != parameters.end());
  const auto slot = static_cast<std::size_t>(found - parameters.begin());
  return {name, newest_.weights->version, newest_.weights->slots[slot].value};
}

GradientShare TrainingStage::take_gradients(Stream& /*stream*/) { return stage_.take_gradients(); }

Tensor TrainingStage::evaluate(Stream& stream, Tensor input, Tensor targets,
                               std::span<const Loan> loans) const {
  assert(loans.size() == borrowed_.size());
  return stage_.evaluate(stream, *newest_.weights, std::move(input), std::move(targets));
}

}  // namespace troupe::models
