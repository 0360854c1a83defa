#include "models/stale/gap.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "kernels/late.h"
#include "models/arithmetic.h"
#include "models/train/update_rule.h"

namespace troupe::models {
namespace {

using S = StalenessOptions;

/// Returns the scale and floor of usual steps, from an average of squares over `steps` steps.
kernels::UsualStep usual_rule(const OptimizerConfig& config, const S& staleness, double memory,
                              std::int64_t steps) {
  const bool is_sgd = config.kind == OptimizerConfig::Kind::sgd;
  double scale = 1, floor = is_sgd ? 1e-8 : config.eps;
  switch (staleness.gap_statistics) {
    case S::GapStatistics::corrected:
      scale /= std::sqrt(1 - power(memory, steps));
      break;
    case S::GapStatistics::ftpipe:
      // FTPipe's average for sgd starts with the momentum before the first step, which is 0.
      if (is_sgd) scale /= std::sqrt(1 - power(memory, steps + 1));
      break;
  }
  if (is_sgd || staleness.gap_scale == S::GapScale::max_lr) {
    const double highest = config.stride(config.rate.highest_until(steps));
    scale *= highest;
    floor *= highest;
  }
  return {.scale = scale, .floor = floor};
}

}  // namespace

const Tensor& Gap::now(std::size_t i) const {
  return now_.weights->slots[rules_.owned[i][0]].value;
}

/// Returns whether gaps have a scale: not if every learning rate so far was 0 and no weight moved.
bool Gap::is_known() const {
  return !now_.moments.empty() && rules_.config.rate.highest_until(now_.weights->version) > 0;
}

Tensor Gap::then(Stream& stream, std::size_t i) const {
  if (then_) return then_->slots[rules_.owned[i][0]].value;
  const auto& config = rules_.configs[i];
  if (keeps_last_move(config, rules_.lateness.staleness))
    return combined(stream, 1, now(i), -1, last_move(i));
  const std::int64_t version = now_.weights->version;
  const Tensor along = update_rule(i).direction(stream, config, version, now_.moments[i]);
  const double lr = late_rate(config.rate, rules_.lateness, version - 1);
  const bool is_decoupled = config.kind == OptimizerConfig::Kind::adamw;
  const double kept = is_decoupled ? 1 - lr * config.weight_decay : 1;
  return combined(stream, 1 / kept, now(i), config.stride(lr) / kept, along);
}

const UpdateRule& Gap::update_rule(std::size_t i) const {
  const auto& parameter = rules_.parameters[rules_.owned[i][0]];
  return rule_for(rules_.configs[i], rules_.lateness.staleness, parameter);
}

const Tensor& Gap::spread(std::size_t i) const {
  return now_.moments[i][update_rule(i).moments.size()];
}

/// It follows the spread, as in moment_names().
const Tensor& Gap::last_move(std::size_t i) const {
  return now_.moments[i][update_rule(i).moments.size() + 1];
}

kernels::UsualStep Gap::usual_step(std::size_t i) const {
  const auto& rule = update_rule(i);
  assert(rule.spread_memory && "no rule tells how far this parameter goes");
  const auto& config = rules_.configs[i];
  return usual_rule(config, rules_.lateness.staleness, rule.spread_memory(config),
                    now_.weights->version);
}

Tensor Gap::usual(Stream& stream, std::size_t i) const {
  const Tensor& squares = spread(i);
  Tensor usual = stream.make(squares.shape(), squares.dtype());
  with_number(usual.dtype(), [&]<class T>(T) {
    kernels::usual_step(stream, usual_step(i), squares.data<T>(), usual.data<T>(), usual.count());
  });
  return usual;
}

void Gap::by_element(Stream& stream, std::size_t i, Tensor* share, Tensor* gradient) const {
  const Tensor old = then(stream, i);
  with_number(old.dtype(), [&]<class T>(T) {
    kernels::gap_share(stream, usual_step(i),
                       kernels::GapBetween<T>{now(i).data<T>(), old.data<T>(), spread(i).data<T>()},
                       share ? share->data<T>() : nullptr, gradient ? gradient->data<T>() : nullptr,
                       old.count());
  });
}

std::vector<Gap::Squares> Gap::squares(Stream& stream) const {
  if (!is_known()) return {};
  std::vector<std::int64_t> counts;
  for (std::size_t i = 0; i < rules_.owned.size(); ++i)
    counts.insert(counts.end(), 2, now(i).count());
  const auto found = sums_of_squares(stream, counts, [&](std::size_t k) {
    const std::size_t i = k / 2;
    if (k % 2 == 1) return usual(stream, i);
    return combined(stream, 1, now(i), -1, then(stream, i));
  });
  std::vector<Squares> squares;
  for (std::size_t k = 0; k < found.size(); k += 2)
    squares.push_back({.gap = found[k], .usual = found[k + 1]});
  return squares;
}

Tensor Gap::share(Stream& stream, std::size_t i, std::span<const Squares> squares) const {
  const auto penalty = rules_.lateness.staleness.gap_penalty;
  if (!is_known() || penalty == S::GapPenalty::none) return {};
  Tensor share = stream.make(spread(i).shape(), spread(i).dtype());
  if (penalty == S::GapPenalty::elementwise)
    by_element(stream, i, &share, nullptr);
  else
    fill(stream, 1 / (1 + std::sqrt(squares[i].gap / squares[i].usual)), share);
  return share;
}

bool Gap::penalises_at_once(Stream& stream, std::size_t i, Tensor& gradient) const {
  if (rules_.lateness.staleness.gap_penalty != S::GapPenalty::elementwise) return false;
  if (is_known()) by_element(stream, i, nullptr, &gradient);
  return true;
}

double Gap::factor(Stream& stream) const {
  double gap = 0, step = 0;
  for (const auto& squares : this->squares(stream)) {
    gap += squares.gap;
    step += squares.usual;
  }
  return step > 0 ? 1 + std::sqrt(gap / step) : 1;
}

LateGradients::LateGradients(const GapRules& rules, Of of)
    : rules_(rules),
      of_(std::move(of)),
      sets_(GradientSets::of(rules.config, rules.lateness.staleness)) {}

/// Computes the penalties of a parameter for the statistics. If `share` is empty, all are 1.
void LateGradients::note(Stream& stream, const Tensor& share, std::int64_t count) {
  elements_ += static_cast<double>(count);
  if (share.empty()) {
    penalty_sum_ += static_cast<double>(count);
    return;
  }
  static_assert(sizeof(kernels::Inverses) == 2 * sizeof(double));
  if (noted_.empty()) noted_ = stream.make({blocks_of_all(), 2}, DType::f64);
  auto* blocks = static_cast<kernels::Inverses*>(noted_.raw()) + noted_blocks_;
  with_number(share.dtype(), [&]<class T>(T) {
    kernels::inverses_of_blocks(stream, share.data<T>(), count, blocks);
  });
  noted_blocks_ += kernels::blocks_of_sums(count);
}

std::int64_t LateGradients::blocks_of_all() const {
  std::int64_t blocks = 0;
  for (const auto& slots : rules_.owned)
    blocks += kernels::blocks_of_sums(rules_.parameters[slots[0]].shape.count());
  return blocks;
}

/// Adds the penalties of all parameters to the statistics, with one wait.
void LateGradients::add_noted(Stream& stream) {
  if (noted_blocks_ == 0) return;
  const Tensor here = stream.to_host(std::exchange(noted_, {}));
  stream.wait();
  const auto numbers =
      here.numbers<double>().first(static_cast<std::size_t>(2 * std::exchange(noted_blocks_, 0)));
  for (std::size_t at = 0; at < numbers.size(); at += 2) {
    penalty_sum_ += numbers[at];
    penalty_most_ = std::max(penalty_most_, numbers[at + 1]);
  }
}

Tensor& LateGradients::in_set(std::span<Tensor> tensors, int set, std::size_t slot) const {
  return tensors[static_cast<std::size_t>(set) * rules_.parameters.size() + slot];
}

/// Returns whether anything but a single gradient needs the penalties of a parameter.
bool LateGradients::is_share_wanted(std::size_t i) const {
  const auto& slots = rules_.owned[i];
  return is_measured_ || slots.size() > 1 || sets_.decay_share > 0 ||
         std::ranges::find(of_.lent, slots[0]) != of_.lent.end();
}

/// Copies the gradients before any division. Skips borrowed parameters unless this stage divides by
/// a gap factor of its own: their owner sums up the gradients it receives, which carry no other
/// penalty of this stage.
void LateGradients::keep_raw(Stream& stream, std::span<Tensor> tensors) {
  const auto& borrowed = rules_.lateness.borrowed;
  for (std::size_t slot = 0; slot < rules_.parameters.size(); ++slot) {
    const bool is_borrowed =
        std::ranges::find(borrowed, rules_.parameters[slot].name) != borrowed.end();
    if (tensors[slot].empty()) continue;  // A frozen parameter.
    if (!is_borrowed || divides_by_gap_factor(rules_.lateness.staleness))
      in_set(tensors, sets_.raw, slot) = copied(stream, tensors[slot]);
  }
}

void LateGradients::penalise(Stream& stream, std::size_t i, std::span<Tensor> tensors) {
  if (!is_share_wanted(i) &&
      (!of_.gap || of_.gap->penalises_at_once(stream, i, tensors[rules_.owned[i][0]])))
    return;
  const Tensor share = of_.gap ? of_.gap->share(stream, i, squares_) : Tensor();
  if (is_measured_) note(stream, share, tensors[rules_.owned[i][0]].count());
  for (const auto slot : rules_.owned[i]) {
    if (!share.empty()) multiply(stream, share, tensors[slot]);
  }
  const std::size_t first = rules_.owned[i][0];
  const auto tell = [&](int set, double weight) {
    const Tensor& gradient = tensors[first];
    in_set(tensors, set, first) = share.empty()
                                      ? filled(stream, gradient.shape(), gradient.dtype(), weight)
                                      : combined(stream, weight, share, 0, share);
  };
  if (sets_.decay_share > 0) tell(sets_.decay_share, of_.weight);
  if (std::ranges::find(of_.lent, first) != of_.lent.end())
    tell(of_.is_later ? sets_.later_share : sets_.first_share, of_.weight_at_point);
}

void LateGradients::mend(Stream& stream, std::span<Tensor> tensors) {
  const auto& staleness = rules_.lateness.staleness;
  if (sets_.raw > 0) keep_raw(stream, tensors);
  if (of_.gap && staleness.gap_penalty == S::GapPenalty::tensor_norm)
    squares_ = of_.gap->squares(stream);
  if (staleness.gap_penalty != S::GapPenalty::none)
    for (std::size_t i = 0; i < rules_.owned.size(); ++i) penalise(stream, i, tensors);
  add_noted(stream);
  if (of_.factor != 1)
    for (Tensor& gradient : tensors.first(rules_.parameters.size()))
      if (!gradient.empty()) combine(stream, 1 / of_.factor, gradient, 0, gradient, gradient);
  if (of_.gap && staleness.delay_compensation > 0)
    for (std::size_t i = 0; i < rules_.owned.size(); ++i) compensate(stream, i, tensors);
  if (sets_.later > 0)
    for (const auto slot : of_.later)
      in_set(tensors, sets_.later, slot) = std::exchange(tensors[slot], {});
}

void LateGradients::compensate(Stream& stream, std::size_t i, std::span<Tensor> tensors) {
  const Tensor old = of_.gap->then(stream, i);
  for (const auto slot : rules_.owned[i]) {
    Tensor& gradient = tensors[slot];
    with_number(gradient.dtype(), [&]<class T>(T) {
      kernels::compensate_delay(stream, rules_.lateness.staleness.delay_compensation,
                                of_.gap->now(i).data<T>(), old.data<T>(), gradient.data<T>(),
                                gradient.count());
    });
  }
}

}  // namespace troupe::models
