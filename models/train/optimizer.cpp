#include "models/train/optimizer.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>

#include "kernels/late.h"
#include "kernels/steps.h"
#include "models/arithmetic.h"
#include "models/train/initial_weights.h"
#include "models/train/repeatedly.h"
#include "models/train/trained.h"
#include "models/train/update_rule.h"

namespace troupe::models {
namespace {

using ByName = std::map<std::string_view, const Tensor*>;

ByName by_name(const std::vector<NamedTensor>& tensors) {
  ByName found;
  for (const auto& [name, tensor] : tensors) found.emplace(name, &tensor);
  return found;
}

/// Returns the tensor of that name, or an error if its shape or type is wrong.
Result<Tensor> wanted(const ByName& tensors, const std::string& name, const Shape& shape,
                      DType type) {
  const auto found = tensors.find(name);
  if (found == tensors.end())
    return Error{"there is no tensor '" + name + "'; it should be there with shape " +
                 to_string(shape)};
  const Tensor& tensor = *found->second;
  if (tensor.dtype() != type)
    return Error{"the tensor '" + name + "' is " + std::string(to_string(tensor.dtype())) +
                 ", but " + std::string(to_string(type)) + " is wanted"};
  if (tensor.shape() != shape)
    return Error{"the tensor '" + name + "' has shape " + to_string(tensor.shape()) +
                 ", but the model wants " + to_string(shape)};
  return tensor;
}

}  // namespace

double global_norm(std::span<const SquaredNorm> squares) {
  std::set<std::string_view> seen;
  double sum = 0;
  for (std::size_t at = 0; at < squares.size();) {
    const auto& name = squares[at].name;
    std::vector<double> blocks;
    do {
      blocks.insert(blocks.end(), squares[at].blocks.begin(), squares[at].blocks.end());
      ++at;
    } while (at < squares.size() && squares[at].name == name &&
             squares[at].first_block == static_cast<std::int64_t>(blocks.size()));
    if (!seen.insert(name).second) continue;
    sum += kernels::sum_of_blocks(blocks.data(), static_cast<std::int64_t>(blocks.size()));
  }
  return std::sqrt(sum);
}

Optimizer::Optimizer(const OptimizerConfig& config, std::vector<Parameter> parameters,
                     std::vector<Buffer> buffers, kernels::Precision precision, Lateness lateness,
                     const LossScaling& loss_scaling, Graphs graphs)
    : config_(config),
      parameters_(std::move(parameters)),
      buffers_(std::move(buffers)),
      precision_(precision),
      lateness_(std::move(lateness)),
      loss_scaling_(loss_scaling),
      graphs_(graphs) {
  for (auto& slots : owned_slots(parameters_, lateness_.borrowed)) {
    const Parameter& parameter = parameters_[slots[0]];
    for (const auto slot : slots) assert(parameters_[slot].shape == parameter.shape);
    auto own = config_.for_parameter(parameter.name);
    if (parameter.frozen) {
      trained_.push_back({.slots = std::move(slots),
                          .config = std::move(own),
                          .rule = nullptr,
                          .moment_names = {},
                          .moments = {}});
      continue;
    }
    const auto& rule = rule_for(own, lateness_.staleness, parameter);
    auto names = moment_names(rule, own, lateness_.staleness);
    largest_first_.push_back(trained_.size());
    trained_.push_back({.slots = std::move(slots),
                        .config = std::move(own),
                        .rule = &rule,
                        .moment_names = std::move(names),
                        .moments = {}});
  }
  std::ranges::stable_sort(largest_first_, std::ranges::greater(),
                           [&](std::size_t i) { return declared(trained_[i]).shape.count(); });
}

std::vector<std::size_t> Optimizer::slots_of(const std::string& name) const {
  std::vector<std::size_t> slots;
  for (std::size_t slot = 0; slot < parameters_.size(); ++slot)
    if (parameters_[slot].name == name) slots.push_back(slot);
  assert(!slots.empty() && "no such parameter in this stage");
  return slots;
}

std::string Optimizer::moment_name(const Trained& trained, std::size_t moment) const {
  return declared(trained).name + "." + std::string(trained.moment_names[moment]);
}

Tensor* Optimizer::moment(Trained& trained, std::string_view name) const {
  const auto found = std::ranges::find(trained.moment_names, name);
  if (found == trained.moment_names.end()) return nullptr;
  return &trained.moments[static_cast<std::size_t>(found - trained.moment_names.begin())];
}

void Optimizer::place(const Trained& trained, const Tensor& value, Weights& weights) const {
  for (const auto slot : trained.slots) weights.slots[slot].value = value;
}

/// Packs matrices after all values exist, so that the values lie together in memory and leave one
/// contiguous gap when the version is freed.
void Optimizer::make_forms(Stream& stream, Weights& weights) const {
  for (const auto& trained : trained_)
    if (trained.rule) make_forms(stream, trained, weights);
}

void Optimizer::make_forms(Stream& stream, const Trained& trained, Weights& weights) const {
  for (const auto slot : trained.slots)
    weights.slots[slot] =
        weight_of(stream, parameters_[slot], precision_, std::move(weights.slots[slot].value));
}

/// Moments begin at zero, and the average of weights with the weights.
void Optimizer::make_moments(Stream& stream, const Weights& weights) {
  for (auto& trained : trained_)
    while (trained.moments.size() < trained.moment_names.size()) {
      const bool is_average = trained.moment_names[trained.moments.size()] == ema_name;
      trained.moments.push_back(
          is_average ? copied(stream, weights.slots[trained.slots[0]].value)
                     : filled(stream, declared(trained).shape, declared(trained).type, 0));
    }
}

std::int64_t Optimizer::numbers_to_pack(const Trained& trained) const {
  return declared(trained).shape.count() * static_cast<std::int64_t>(trained.slots.size());
}

FirstVersion Optimizer::begin(Stream& stream, std::uint64_t seed) const {
  const Stream::Lasting lasting(stream);
  FirstVersion first{.weights = std::make_shared<Weights>(), .seed = seed};
  first.weights->slots.resize(parameters_.size());
  for (const auto& trained : trained_)
    first.all += declared(trained).shape.count() + numbers_to_pack(trained);
  for (const auto& buffer : buffers_)
    first.weights->buffers.push_back(filled(stream, buffer.shape, DType::f32, buffer.initial));
  first.weights->loss_scale = loss_scaling_.first();
  return first;
}

Result<FirstVersion> Optimizer::begin_from(Stream& stream, const std::vector<NamedTensor>& tensors,
                                           std::int64_t version, const LossScale& reached) const {
  const Stream::Lasting lasting(stream);
  const auto given = by_name(tensors);
  FirstVersion first{.weights = std::make_shared<Weights>(), .drawn_parameters = trained_.size()};
  Weights& weights = *first.weights;
  weights.version = version;
  weights.loss_scale = version == 0 ? loss_scaling_.first() : reached;
  weights.slots.resize(parameters_.size());
  for (const auto& trained : trained_) {
    auto tensor =
        wanted(given, declared(trained).name, declared(trained).shape, declared(trained).type);
    if (!tensor) return tensor.error();
    place(trained, stream.to_here(*tensor), weights);
    first.all += numbers_to_pack(trained);
  }
  for (const auto& buffer : buffers_) {
    auto tensor = wanted(given, buffer.name, buffer.shape, DType::f32);
    if (!tensor) return tensor.error();
    weights.buffers.push_back(stream.to_here(*tensor));
  }
  return first;
}

void Optimizer::go_on(Stream& stream, FirstVersion& first, std::int64_t numbers) const {
  const Stream::Lasting lasting(stream);
  const auto end = numbers < first.all - first.done ? first.done + numbers : first.all;
  while (first.done < end && first.drawn_parameters < trained_.size()) {
    const auto& trained = trained_[first.drawn_parameters];
    const Parameter& parameter = declared(trained);
    auto& weights = *first.weights;
    if (first.drawn_numbers == 0)
      place(trained, stream.make(parameter.shape, parameter.type), weights);
    const auto rest = parameter.shape.count() - first.drawn_numbers;
    const auto count = std::min(rest, (end - first.done + 3) / 4 * 4);  // Drawn in fours.
    draw_initial(stream, parameter, first.seed, first.drawn_numbers, count,
                 weights.slots[trained.slots[0]].value);
    first.done += count;
    first.drawn_numbers += count;
    if (count < rest) continue;
    first.drawn_numbers = 0;
    ++first.drawn_parameters;
  }
  while (first.done < end) {
    const auto& trained = trained_[first.packed_parameters++];
    make_forms(stream, trained, *first.weights);
    first.done += numbers_to_pack(trained);
  }
}

WeightsPtr Optimizer::initial(Stream& stream, std::uint64_t seed) const {
  FirstVersion first = begin(stream, seed);
  go_on(stream, first, first.all);
  return first.weights;
}

Result<WeightsPtr> Optimizer::from(Stream& stream, const std::vector<NamedTensor>& tensors,
                                   std::int64_t version, const LossScale& reached) const {
  auto first = begin_from(stream, tensors, version, reached);
  if (!first) return first.error();
  go_on(stream, *first, first->all);
  return WeightsPtr(std::move(first->weights));
}

void Optimizer::add_own_uses(Stream& stream, StageGradients& gradients,
                             std::span<const std::size_t> slots, int set) const {
  const std::size_t offset = static_cast<std::size_t>(set) * parameters_.size();
  Tensor& first = gradients.slots[offset + slots[0]];
  for (const auto slot : slots.subspan(1)) {
    const Tensor later = std::exchange(gradients.slots[offset + slot], {});
    if (!later.empty()) accumulate(stream, first, later);
  }
}

Tensor Optimizer::gradient(Stream& stream, StageGradients& gradients,
                           const std::string& name) const {
  const auto slots = slots_of(name);
  add_own_uses(stream, gradients, slots);
  return gradients.slots[slots[0]];
}

void Optimizer::add_to(Stream& stream, StageGradients& gradients, std::size_t at,
                       const Tensor& other) const {
  // Add into new memory: this stage may be sending its own gradient to the other stage. The order
  // does not matter, since a + b = b + a to the bit.
  gradients.slots[at] = combined(stream, 1, gradients.slots[at], 1, other);
}

void Optimizer::add_use(Stream& stream, StageGradients& gradients, const std::string& name,
                        const Tensor& other) const {
  const auto slots = slots_of(name);
  if (parameters_[slots[0]].frozen) return;
  add_own_uses(stream, gradients, slots);
  add_to(stream, gradients, slots[0], other);
}

/// Penalises another stage's gradients at the first and at the later point of the weights.
Tensor Optimizer::penalised(Stream& stream, const StageGradients& gradients, std::size_t slot,
                            const Tensor& first, const Tensor& later) const {
  const auto sets = GradientSets::of(config_, lateness_.staleness);
  const auto times_share = [&](const Tensor& gradient, int set) {
    const Tensor& share =
        gradients.slots[static_cast<std::size_t>(set) * parameters_.size() + slot];
    // Holders of two stages have made them.
    if (share.empty())
      throw std::runtime_error("found gradients of " + parameters_[slot].name +
                               " by weights that its own stage has not seen");
    Tensor product = copied(stream, gradient);
    multiply(stream, share, product);
    return product;
  };
  Tensor sum = times_share(first, sets.first_share);
  if (!later.empty()) accumulate(stream, sum, times_share(later, sets.later_share));
  return sum;
}

void Optimizer::add_uses(Stream& stream, StageGradients& gradients,
                         const std::vector<std::string>& names,
                         const StageGradients& others) const {
  const auto sets = GradientSets::of(config_, lateness_.staleness);
  const bool theirs_are_mended = others.slots.size() > names.size();
  const bool ours_are_mended = gradients.slots.size() > parameters_.size();
  const bool theirs_are_divided = theirs_are_mended && divides_by_gap_factor(lateness_.staleness);
  std::set<std::string_view> added;
  for (const auto& name : names) {
    if (!added.insert(name).second || parameters_[slots_of(name)[0]].frozen) continue;
    if (!ours_are_mended && !theirs_are_mended) {
      // One by one, as if all uses were in this stage: so no cut changes the order of the sum.
      for (std::size_t use = 0; use < names.size(); ++use)
        if (names[use] == name && !others.slots[use].empty())
          add_use(stream, gradients, name, others.slots[use]);
      continue;
    }
    const auto given = [&](int set) {
      Tensor sum;
      for (std::size_t use = 0; use < names.size(); ++use)
        if (names[use] == name)
          add(stream, sum, others.slots[static_cast<std::size_t>(set) * names.size() + use]);
      return sum;
    };
    const Tensor first = given(0),
                 later = theirs_are_mended && sets.later > 0 ? given(sets.later) : Tensor();
    const Tensor all = later.empty() ? first : combined(stream, 1, first, 1, later);
    const auto slots = slots_of(name);
    add_use(stream, gradients, name,
            ours_are_mended && sets.first_share > 0
                ? penalised(stream, gradients, slots[0], first, later)
                : all);
    if (!ours_are_mended || sets.raw == 0) continue;
    add_own_uses(stream, gradients, slots, sets.raw);
    add_to(stream, gradients, static_cast<std::size_t>(sets.raw) * parameters_.size() + slots[0],
           theirs_are_divided ? given(sets.raw) : all);
  }
}

/// Runs the repeated work of a step, in memory that the next step uses again.
template <class Body>
void Optimizer::repeat(Stream& stream, Repeated work, Body body) {
  const SteadyMemory::Turn turn(memory_, stream, work);
  graphs_ == Graphs::none ? body() : repeatedly(stream, std::move(body));
}

std::vector<SquaredNorm> Optimizer::squared_norms(Stream& stream, StageGradients& gradients,
                                                  const LossScale& scale) {
  const bool is_mended = gradients.slots.size() > parameters_.size();
  const int raw = GradientSets::of(config_, lateness_.staleness).raw;
  return squares_of(stream, gradients, is_mended ? raw : 0, scale, norms);
}

std::vector<SquaredNorm> Optimizer::penalised_squares(Stream& stream, StageGradients& gradients,
                                                      const LossScale& scale) {
  const bool is_mended = gradients.slots.size() > parameters_.size();
  if (!is_mended || GradientSets::of(config_, lateness_.staleness).raw == 0) return {};
  return squares_of(stream, gradients, 0, scale, penalised_norms);
}

std::vector<SquaredNorm> Optimizer::squares_of(Stream& stream, StageGradients& gradients, int set,
                                               const LossScale& scale, Repeated work) {
  const auto blocks_of = [&](const Trained& trained) {
    return kernels::blocks_of_sums(declared(trained).shape.count());
  };
  std::int64_t all_blocks = 0;
  for (const auto& trained : trained_)
    if (trained.rule) all_blocks += blocks_of(trained);
  Tensor sums;
  repeat(stream, work, [&] {
    sums = stream.make({all_blocks}, DType::f64);
    std::vector<Tensor> own;
    own.reserve(trained_.size());
    for (const auto& trained : trained_) {
      if (!trained.rule) continue;
      add_own_uses(stream, gradients, trained.slots, set);
      const auto slot = static_cast<std::size_t>(set) * parameters_.size() + trained.slots[0];
      own.push_back(gradients.slots[slot]);
    }
    squares_of_blocks(stream, own, sums.data<double>());
  });
  sums = stream.to_host(std::move(sums));
  stream.wait();  // One wait for all parameters.

  // Both scales are powers of two, so neither this division nor that of the gradients rounds.
  const double squared_scale = scale.factor() * scale.factor();
  const double to_mean = gradients.targets.to_mean();
  std::vector<SquaredNorm> squares;
  squares.reserve(trained_.size());
  const auto* at = sums.data<double>();
  for (const auto& trained : trained_) {
    if (!trained.rule) continue;
    auto& square = squares.emplace_back();
    square.name = declared(trained).name;
    square.blocks.assign(at, at + blocks_of(trained));
    square.first_block = declared(trained).first / kernels::block_of_sums;
    for (double& sum : square.blocks) sum = sum / squared_scale * (to_mean * to_mean);
    at += blocks_of(trained);
  }
  return squares;
}

/// Returns a parameter's tensor from one of the sets; empty if there is no such set.
Tensor Optimizer::take(StageGradients& gradients, const Trained& trained, int set) const {
  const auto at = static_cast<std::size_t>(set) * parameters_.size() + trained.slots[0];
  return set > 0 && at < gradients.slots.size() ? std::exchange(gradients.slots[at], {}) : Tensor();
}

/// Updates what policies for late gradients read, the spread, the last move and the drift, and the
/// average of weights.
void Optimizer::watch(Stream& stream, Trained& trained, std::int64_t step, double lr,
                      const Tensor& weight, const Tensor& next) {
  using S = StalenessOptions;
  if (Tensor* spread = moment(trained, spread_name)) {
    const auto& rule = *trained.rule;
    const Tensor along = rule.direction(stream, trained.config, step + 1, trained.moments);
    const bool is_sgd = config_.kind == OptimizerConfig::Kind::sgd;
    const bool by_highest_rate = is_sgd || lateness_.staleness.gap_scale == S::GapScale::max_lr;
    const kernels::SquareAverage average{.keep = rule.spread_memory(trained.config),
                                         .scale = by_highest_rate ? 1 : lr};
    with_number(along.dtype(), [&]<class T>(T) {
      kernels::average_squares(stream, average, along.data<T>(), spread->data<T>(), along.count());
    });
  }
  if (Tensor* last_move = moment(trained, last_move_name))
    combine(stream, 1, next, -1, weight, *last_move);
  if (Tensor* drift = moment(trained, drift_name)) {
    const double keep =
        fractional_power(lateness_.staleness.drift_memory, 1.0 / std::max(1, lateness_.delay));
    const Tensor move = combined(stream, 1, next, -1, weight);
    combine(stream, keep, *drift, 1 - keep, move, *drift);
  }
  if (Tensor* ema = moment(trained, ema_name))
    combine(stream, config_.ema, *ema, 1 - config_.ema, next, *ema);
}

/// Returns the steps that gradients make up for: 0 while the pipeline drains after every step.
int Optimizer::missed_steps(std::int64_t step) const {
  const auto& staleness = lateness_.staleness;
  return staleness.spike_compensation && step >= staleness.synchronous_steps ? lateness_.delay : 0;
}

/// Steps all parameters once.
void Optimizer::update(Stream& stream, const Weights& weights, StageGradients& gradients,
                       double clip, Weights& next) {
  const auto sets = GradientSets::of(config_, lateness_.staleness);
  next.slots.resize(parameters_.size());
  for (const auto& trained : trained_)
    if (!trained.rule)
      for (const auto slot : trained.slots) next.slots[slot] = weights.slots[slot];
  for (const auto i : largest_first_) {
    auto& trained = trained_[i];
    add_own_uses(stream, gradients, trained.slots);
    const Parameter& parameter = declared(trained);
    const double lr =
        late_rate(trained.config.rate, lateness_, weights.version) * gradients.rate_share;
    const Tensor& weight = weights.slots[trained.slots[0]].value;
    Tensor gradient = std::exchange(gradients.slots[trained.slots[0]], {});
    Tensor value = stream.make(parameter.shape, parameter.type);
    trained.rule->apply(
        stream, {.config = trained.config,
                 .parameter = parameter,
                 .step = weights.updates(),
                 .lr = lr,
                 .gradient_scale = clip / weights.loss_scale.factor() * gradients.targets.to_mean(),
                 .weight = weight,
                 .gradient = gradient,
                 .decay_share = take(gradients, trained, sets.decay_share),
                 .missed_steps = missed_steps(weights.version),
                 .next = value,
                 .moments = std::span(trained.moments).first(trained.rule->moments.size())});
    gradient = {};  // Frees its memory for the tensors that follow.
    watch(stream, trained, weights.updates(), lr, weight, value);
    place(trained, value, next);
  }
  make_forms(stream, next);
}

WeightsPtr Optimizer::step(Stream& stream, const WeightsPtr& weights, StageGradients gradients,
                           double norm) {
  const Stream::Lasting lasting(stream);
  make_moments(stream, *weights);
  auto next = std::make_shared<Weights>();
  next->version = weights->version + 1;
  if (gradients.targets.none_counts()) {
    next->slots = weights->slots;
    next->loss_scale = weights->loss_scale;
    ++next->loss_scale.skipped_steps;
  } else if (std::isfinite(norm)) {
    // As torch.nn.utils.clip_grad_norm_ does.
    const double clip =
        config_.clip_norm > 0 ? std::min(1.0, config_.clip_norm / (norm + 1e-6)) : 1;
    repeat(stream, steps, [&] { update(stream, *weights, gradients, clip, *next); });
    next->loss_scale = loss_scaling_.after_step(weights->loss_scale);
  } else {
    assert(loss_scaling_.can_skip(weights->loss_scale) &&
           "a poisoned step is the caller's to halt at");
    next->slots = weights->slots;
    next->loss_scale = loss_scaling_.after_overflow(weights->loss_scale);
  }
  // Buffers take their statistics even if the step is skipped: forward passes made them.
  repeat(stream, statistics, [&] {
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      next->buffers.push_back(next_buffer(stream, i, weights->buffers[i], gradients));
  });
  return next;
}

WeightsPtr Optimizer::leave_out(Stream& stream, const WeightsPtr& weights) {
  const Stream::Lasting lasting(stream);
  make_moments(stream, *weights);
  auto next = std::make_shared<Weights>(*weights);
  ++next->version;
  ++next->loss_scale.skipped_steps;
  return next;
}

Tensor Optimizer::next_buffer(Stream& stream, std::size_t buffer, const Tensor& last,
                              const StageGradients& gradients) const {
  const float share = buffers_[buffer].share;
  Tensor next;
  for (const auto& statistics : gradients.statistics) {
    const Tensor from = next.empty() ? last : next;
    if (next.empty()) next = stream.make(last.shape());
    kernels::combine(stream, 1 - share, from.f32(), share, statistics[buffer].f32(), next.f32(),
                     next.count());
  }
  return next.empty() ? last : next;
}

Moments Optimizer::moments() const {
  Moments moments;
  moments.reserve(trained_.size());
  for (const auto& trained : trained_) {
    if (!trained.rule) continue;
    auto& own = moments.emplace_back(trained.moments);
    if (config_.ema > 0 && !own.empty()) own.pop_back();
  }
  return moments;
}

std::vector<NamedTensor> Optimizer::named(const Weights& weights) const {
  std::vector<NamedTensor> named;
  for (const auto& trained : trained_)
    named.push_back({declared(trained).name, weights.slots[trained.slots[0]].value});
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    named.push_back({buffers_[i].name, weights.buffers[i]});
  return named;
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> state;
  for (const auto& trained : trained_)
    for (std::size_t i = 0; i < trained.moments.size(); ++i)
      state.push_back({moment_name(trained, i), trained.moments[i]});
  return state;
}

Status Optimizer::restore(Stream& stream, const std::vector<NamedTensor>& state,
                          std::int64_t steps_done) {
  if (steps_done == 0) return Done{};
  const Stream::Lasting lasting(stream);
  const auto given = by_name(state);
  std::vector<std::vector<Tensor>> restored;
  for (const auto& trained : trained_) {
    auto& moments = restored.emplace_back();
    for (std::size_t i = 0; i < trained.moment_names.size(); ++i) {
      const Parameter& parameter = declared(trained);
      auto tensor = wanted(given, moment_name(trained, i), parameter.shape, parameter.type);
      if (!tensor) return tensor.error();
      moments.push_back(copied(stream, *tensor));
    }
  }
  for (std::size_t i = 0; i < trained_.size(); ++i) trained_[i].moments = std::move(restored[i]);
  return Done{};
}

}  // namespace troupe::models
