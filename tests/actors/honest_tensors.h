#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "actors/exchange.h"
#include "actors/tensor_bounds.h"

namespace troupe::actors {

/// Makes messages as honest players of a run send them: with tensors of all the right forms, whose
/// bytes are 0.
class HonestTensors {
 public:
  HonestTensors(const RunSpec& spec, const TensorBounds& bounds, MemoryPool& memory)
      : spec_(spec), bounds_(bounds), memory_(memory) {}

  Tensor tensor(const TensorForm& form) const {
    Tensor made = Tensor::make(memory_, form.shape, form.type);
    std::ranges::fill(made.host_bytes(), std::byte{0});
    return made;
  }

  models::Bundle bundle(const BundleForm& form) const {
    models::Bundle made = tensor(form.stream);
    for (const auto& kept : form.kept) made.kept.push_back(tensor(kept.form));
    return made;
  }

  Activation activation(int stage) const {
    return {{}, stage, bundle(batch().inputs.at(static_cast<std::size_t>(stage)))};
  }
  Targets targets() const { return {{}, tensor(batch().targets)}; }
  Gradient gradient(int stage) const {
    BundleForm form = batch().inputs.at(static_cast<std::size_t>(stage) + 1);
    std::erase_if(form.kept, [](const BundleForm::Kept& kept) { return !kept.has_gradient; });
    return {{}, stage, bundle(form)};
  }
  StepGradients gradients(int optimizer, int stage, int holder) const {
    const auto share =
        holders_of(*spec_.round(0, 1), stage)[static_cast<std::size_t>(holder)].share;
    const auto& forms = bounds_.of(optimizer);
    auto given = std::make_shared<models::GradientShare>();
    auto& sum = given->sums.emplace_back();
    sum.first_group = share.first_group;
    sum.groups = share.last_group - share.first_group;
    for (const auto& form : bounds_.gradients_for(optimizer).at(stage))
      sum.slots.push_back(form ? tensor(*form) : Tensor());
    if (forms.has_buffers && stage == place_of(spec_, optimizer).stage)
      for (int m = 0; m < share.count(); ++m) {
        auto& statistics = given->statistics.emplace_back();
        for (const auto& buffer : forms.buffers) statistics.push_back(tensor(buffer.form));
      }
    return {0, stage, holder, std::move(given)};
  }
  NewWeights weights(int optimizer, std::int64_t version) const {
    const auto& forms = bounds_.of(optimizer);
    const auto [stage, section] = place_of(spec_, optimizer);
    auto weights = std::make_shared<models::Weights>();
    weights->version = version;
    for (const auto& form : forms.slots) weights->slots.push_back({tensor(form), {}});
    for (const auto& buffer : forms.buffers) weights->buffers.push_back(tensor(buffer.form));
    models::Moments moments;
    if (stages_use_moments(spec_))
      for (const auto& parameter : forms.parameters) {
        auto& of_one = moments.emplace_back();
        for (std::size_t i = 0; version > 0 && i < parameter.moments.size(); ++i)
          of_one.push_back(tensor(parameter.form));
      }
    return {stage, section, {std::move(weights), std::move(moments)}, {}};
  }
  Snapshot state(int optimizer, std::int64_t step) const {
    const auto& forms = bounds_.of(optimizer);
    Snapshot state{1, optimizer, step, {}, {}, {}};
    for (const auto& parameter : forms.parameters) {
      state.weights.push_back({parameter.name, tensor(parameter.form)});
      for (const auto& moment : parameter.moments)
        if (step > 0) state.moments.push_back({moment, tensor(parameter.form)});
    }
    for (const auto& buffer : forms.buffers)
      state.weights.push_back({buffer.name, tensor(buffer.form)});
    return state;
  }
  Norms norms(int optimizer) const {
    Norms norms{optimizer, 0, {}};
    for (const auto& parameter : bounds_.of(optimizer).parameters)
      norms.squares.push_back({parameter.name,
                               std::vector<double>(static_cast<std::size_t>(parameter.blocks), 1),
                               parameter.first_block});
    return norms;
  }

 private:
  const BatchForms& batch() const { return *bounds_.batches().front(); }

  const RunSpec& spec_;
  const TensorBounds& bounds_;
  MemoryPool& memory_;
};

}  // namespace troupe::actors
