#include "models/training_stage.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace troupe::models {

TrainingStage::TrainingStage(const Model& model, UnitRange units, const StageOptions& options,
                             const StalenessOptions& /*staleness*/,
                             const OptimizerConfig& /*optimizer*/,
                             std::vector<std::string> borrowed)
    : stage_(model, units, options),
      precision_(options.precision),
      borrowed_(std::move(borrowed)) {}

void TrainingStage::begin_round(Round round) {
  assert(stage_.in_flight() == 0);
  round_ = std::move(round);
  stage_.begin_step(round_.share, round_.targets_in_step);
}

void TrainingStage::adopt(Version newest) { newest_ = std::move(newest); }

WeightsPtr TrainingStage::with_loans(Stream& stream, std::span<const Loan> loans) const {
  assert(loans.size() == borrowed_.size());
  if (loans.empty()) return newest_.weights;
  auto weights = std::make_shared<Weights>(*newest_.weights);
  const auto& parameters = stage_.parameters();
  for (const auto& loan : loans)
    for (std::size_t slot = 0; slot < parameters.size(); ++slot) {
      if (parameters[slot].name != loan.name) continue;
      weights->slots[slot].value = loan.value;
      if (parameters[slot].use == Parameter::Use::matrix)
        weights->slots[slot].packed = kernels::PackedLinear(
            stream, linear_shape(parameters[slot], precision_), loan.value.f32());
    }
  return weights;
}

Tensor TrainingStage::forward(Stream& stream, const MicroBatch& m, Tensor input, Tensor targets,
                              std::span<const Loan> loans) {
  auto weights = seen_[m.index] = with_loans(stream, loans);
  return stage_.forward(stream, m, *weights, std::move(input), std::move(targets));
}

void TrainingStage::recompute(Stream& stream, int m) {
  stage_.recompute(stream, m, *seen_.at(m));
}

Tensor TrainingStage::backward_input(Stream& stream, int m, Tensor dy) {
  return stage_.backward_input(stream, m, *seen_.at(m), std::move(dy));
}

void TrainingStage::backward_weight(Stream& stream, int m) {
  stage_.backward_weight(stream, m, *seen_.at(m));
  seen_.erase(m);
}

Tensor TrainingStage::backward(Stream& stream, int m, Tensor dy) {
  Tensor dx = stage_.backward(stream, m, *seen_.at(m), std::move(dy));
  seen_.erase(m);
  return dx;
}

Loan TrainingStage::lend(int /*m*/, const std::string& name) const { return lend_newest(name); }

Loan TrainingStage::lend_newest(const std::string& name) const {
  const auto& parameters = stage_.parameters();
  const auto found = std::ranges::find(parameters, name, &Parameter::name);
  assert(found != parameters.end());
  const auto slot = static_cast<std::size_t>(found - parameters.begin());
  return {name, newest_.weights->version, newest_.weights->slots[slot].value};
}

GradientShare TrainingStage::take_gradients(Stream& /*stream*/) { return stage_.take_gradients(); }

Tensor TrainingStage::evaluate(Stream& stream, Tensor input, Tensor targets,
                               std::span<const Loan> loans) const {
  return stage_.evaluate(stream, *with_loans(stream, loans), std::move(input), std::move(targets));
}

}  // namespace troupe::models
