#include "models/train/trained.h"

#include <algorithm>
#include <map>
#include <utility>

#include "models/train/update_rule.h"

namespace troupe::models {

std::vector<Slots> owned_slots(const std::vector<Parameter>& parameters,
                               const std::vector<std::string>& borrowed) {
  std::vector<Slots> owned;
  std::map<std::string_view, std::size_t> known;
  for (std::size_t slot = 0; slot < parameters.size(); ++slot) {
    if (std::ranges::find(borrowed, parameters[slot].name) != borrowed.end()) continue;
    const auto [entry, is_new] = known.emplace(parameters[slot].name, owned.size());
    if (is_new) owned.emplace_back();
    owned[entry->second].push_back(slot);
  }
  return owned;
}

std::vector<Slots> trained_slots(const std::vector<Parameter>& parameters,
                                 const std::vector<std::string>& borrowed) {
  auto slots = owned_slots(parameters, borrowed);
  std::erase_if(slots, [&](const Slots& of_one) { return parameters[of_one[0]].frozen; });
  return slots;
}

std::vector<OptimizerConfig> configs_of(const OptimizerConfig& config,
                                        const std::vector<Parameter>& parameters,
                                        const std::vector<Slots>& owned) {
  std::vector<OptimizerConfig> configs;
  for (const auto& slots : owned)
    configs.push_back(config.for_parameter(parameters[slots[0]].name));
  return configs;
}

Weight weight_of(Stream& stream, const Parameter& parameter, kernels::Precision precision,
                 Tensor value) {
  Weight weight{.value = std::move(value), .packed = {}};
  if (parameter.use == Parameter::Use::matrix)
    weight.packed =
        kernels::PackedLinear(stream, linear_shape(parameter, precision), weight.value.f32());
  return weight;
}

std::vector<std::string_view> moment_names(const UpdateRule& rule, const OptimizerConfig& config,
                                           const StalenessOptions& staleness) {
  using S = StalenessOptions;
  std::vector<std::string_view> names(rule.moments.begin(), rule.moments.end());
  if (measures_gaps(staleness)) names.push_back(spread_name);
  if (keeps_last_move(config, staleness)) names.push_back(last_move_name);
  if (staleness.linearize_at == S::LinearizeAt::extrapolated) names.push_back(drift_name);
  if (config.ema > 0) names.push_back(ema_name);
  return names;
}

bool keeps_last_move(const OptimizerConfig& config, const StalenessOptions& staleness) {
  using S = StalenessOptions;
  using Kind = OptimizerConfig::Kind;
  if (!measures_gaps(staleness) || staleness.gap_source != S::GapSource::last_update) return false;
  // Nesterov and spike compensation both add a share of the gradient to the momentum.
  const bool adds_gradient =
      config.kind == Kind::sgd && (config.nesterov || staleness.spike_compensation);
  // The step decays by the mean of 1 / P of its micro-batches, which nobody keeps.
  const bool penalises_decay = config.kind == Kind::adamw && config.weight_decay > 0 &&
                               staleness.gap_penalty != S::GapPenalty::none;
  return adds_gradient || penalises_decay;
}

GradientSets GradientSets::of(const OptimizerConfig& config, const StalenessOptions& staleness) {
  GradientSets sets;
  const bool is_penalised = staleness.gap_penalty != StalenessOptions::GapPenalty::none;
  if (is_penalised || divides_by_gap_factor(staleness)) sets.raw = sets.count++;
  if (!is_penalised) return sets;
  if (config.decays()) sets.decay_share = sets.count++;
  sets.first_share = sets.count++;
  sets.later_share = sets.count++;
  sets.later = sets.count++;
  return sets;
}

}  // namespace troupe::models
