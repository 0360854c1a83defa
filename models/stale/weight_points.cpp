#include "models/stale/weight_points.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <span>
#include <utility>

#include "models/arithmetic.h"
#include "models/train/repeatedly.h"
#include "models/train/update_rule.h"

namespace troupe::models {

WeightPoints::WeightPoints(const OptimizerConfig& config, const StalenessOptions& staleness,
                           const Stage& stage, const StageOptions& options,
                           const std::vector<std::string>& borrowed, std::vector<std::string> lent)
    : staleness_(staleness),
      parameters_(stage.parameters()),
      precision_(options.precision),
      is_repeated_(options.short_rows > 0),
      owned_(trained_slots(parameters_, borrowed)),
      configs_(configs_of(config, parameters_, owned_)),
      lent_(std::move(lent)) {}

void WeightPoints::adopt(Version newest) {
  if (staleness_.lag > 0 && newest_.weights) {
    older_.push_back(newest_.weights);
    while (older_.size() > static_cast<std::size_t>(staleness_.lag)) older_.pop_front();
  }
  newest_ = std::move(newest);
  ahead_ = behind_ = {};
}

WeightsPtr WeightPoints::at(std::int64_t version) const {
  if (version == newest_.weights->version) return newest_.weights;
  const auto found = std::ranges::find(older_, version, &Weights::version);
  assert(found != older_.end() && "this version is too old");
  return *found;
}

void WeightPoints::place(Stream& stream, const Slots& slots, const Tensor& value,
                         Weights& weights) const {
  for (const auto slot : slots)
    weights.slots[slot] = weight_of(stream, parameters_[slot], precision_, value);
}

/// Returns a point with the buffers and the frozen parameters of the newest version.
std::shared_ptr<Weights> WeightPoints::begin_point() const {
  auto weights = std::make_shared<Weights>(Weights{.version = version(),
                                                   .slots = {},
                                                   .buffers = newest_.weights->buffers,
                                                   .loss_scale = newest_.weights->loss_scale});
  weights->slots.resize(parameters_.size());
  for (std::size_t slot = 0; slot < parameters_.size(); ++slot)
    if (parameters_[slot].frozen) weights->slots[slot] = newest_.weights->slots[slot];
  return weights;
}

/// Runs repeated work like passes and steps, if the stage repeats its passes.
template <class Body>
void WeightPoints::repeat(Stream& stream, Body body) {
  is_repeated_ ? repeatedly(stream, std::move(body)) : body();
}

Tensor WeightPoints::phi(Stream& stream, const Stage& stage, const Slots& slots) const {
  // Another stage has a part of a lent parameter's gradient.
  if (staleness_.predict != StalenessOptions::Predict::aggmsnag ||
      std::ranges::find(lent_, parameters_[slots[0]].name) != lent_.end())
    return {};
  Tensor sum = stage.gradient_so_far(stream, slots[0]);
  for (std::size_t use = 1; use < slots.size() && !sum.empty(); ++use)
    sum = combined(stream, 1, sum, 1, stage.gradient_so_far(stream, slots[use]));
  return sum;
}

Tensor WeightPoints::expected(Stream& stream, const Stage& stage, std::size_t i,
                              const Horizon& horizon) const {
  const auto& slots = owned_[i];
  const Tensor& now = newest_.weights->slots[slots[0]].value;
  const auto& config = configs_[i];
  const auto& rule = rule_for(config, staleness_, parameters_[slots[0]]);
  std::vector<double> rates;
  for (const double rate : horizon.rates) rates.push_back(rate * config.rate.factor);
  std::span<const Tensor> moments;
  if (!newest_.moments.empty()) moments = newest_.moments[i];
  if (staleness_.predict == StalenessOptions::Predict::linear) {
    assert(rule.direction && "no rule tells where this parameter goes");
    if (moments.empty()) return now;
    const Tensor along = rule.direction(stream, config, version(), moments);
    double way = 0;
    for (const double rate : rates) way += config.stride(rate);
    return combined(stream, 1, now, -way, along);
  }
  assert(rule.predict && "no rule tells where this parameter goes");
  return rule.predict(stream, {.config = config,
                               .steps_done = version(),
                               .rates = rates,
                               .phi = phi(stream, stage, slots),
                               .second_moment = staleness_.second_moment,
                               .weight = now,
                               .moments = moments});
}

WeightsPtr WeightPoints::ahead(Stream& stream, const Stage& stage, const Horizon& horizon) {
  if (horizon.rates.empty()) return newest_.weights;
  const bool counts = staleness_.predict == StalenessOptions::Predict::aggmsnag;
  const int folded = counts ? stage.folded() : 0;
  if (ahead_.weights && ahead_.steps == horizon.rates.size() && ahead_.folded == folded)
    return ahead_.weights;
  ahead_ = {};  // Frees its memory for the next point.
  const SteadyMemory::Turn turn(ahead_memory_, stream, horizon.rates.size());
  const auto weights = begin_point();
  repeat(stream, [&] {
    for (std::size_t i = 0; i < owned_.size(); ++i)
      place(stream, owned_[i], expected(stream, stage, i, horizon), *weights);
  });
  ahead_ = {weights, horizon.rates.size(), folded};
  return ahead_.weights;
}

WeightsPtr WeightPoints::behind(Stream& stream, int steps) {
  if (steps == 0 || newest_.moments.empty()) return newest_.weights;
  if (behind_.weights && behind_.steps == static_cast<std::size_t>(steps)) return behind_.weights;
  behind_ = {};
  const SteadyMemory::Turn turn(behind_memory_, stream, 0);
  const auto weights = begin_point();
  repeat(stream, [&] {
    for (std::size_t i = 0; i < owned_.size(); ++i) {
      const Tensor& now = newest_.weights->slots[owned_[i][0]].value;
      const Tensor& drift = newest_.moments[i].back();
      place(stream, owned_[i], combined(stream, 1, now, -steps, drift), *weights);
    }
  });
  behind_ = {weights, static_cast<std::size_t>(steps), 0};
  return behind_.weights;
}

}  // namespace troupe::models
