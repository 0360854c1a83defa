#include "models/optimizer.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <set>
#include <utility>

#include "kernels/combine.h"
#include "kernels/copy.h"
#include "kernels/steps.h"
#include "models/initial_weights.h"
#include "models/update_rule.h"

namespace troupe::models {
namespace {

using ByName = std::map<std::string_view, const Tensor*>;

ByName by_name(const std::vector<NamedTensor>& tensors) {
  ByName found;
  for (const auto& [name, tensor] : tensors) found.emplace(name, &tensor);
  return found;
}

/// The tensor of that name, if it is what is wanted.
Result<Tensor> wanted(const ByName& tensors, const std::string& name, const Shape& shape) {
  const auto found = tensors.find(name);
  if (found == tensors.end())
    return Error{"there is no tensor '" + name + "'; it should be there with shape " +
                 to_string(shape)};
  const Tensor& tensor = *found->second;
  if (tensor.dtype() != DType::f32)
    return Error{"the tensor '" + name + "' is " + std::string(to_string(tensor.dtype())) +
                 ", but f32 is wanted"};
  if (tensor.shape() != shape)
    return Error{"the tensor '" + name + "' has shape " + to_string(tensor.shape()) +
                 ", but the model wants " + to_string(shape)};
  return tensor;
}

Tensor filled(Stream& stream, const Shape& shape, float value) {
  Tensor tensor = stream.make(shape);
  kernels::fill(stream, value, tensor.f32(), tensor.count());
  return tensor;
}

}  // namespace

double global_norm(std::span<const SquaredNorm> squares) {
  std::set<std::string_view> seen;
  double sum = 0;
  for (const auto& [name, value] : squares)
    if (seen.insert(name).second) sum += value;
  return std::sqrt(sum);
}

Optimizer::Optimizer(const OptimizerConfig& config, std::vector<Parameter> parameters,
                     std::vector<Buffer> buffers, kernels::Precision precision,
                     const std::vector<std::string>& borrowed)
    : config_(config),
      parameters_(std::move(parameters)),
      buffers_(std::move(buffers)),
      precision_(precision) {
  std::map<std::string_view, std::size_t> known;
  for (const auto& name : borrowed) borrowed_[name];
  for (std::size_t slot = 0; slot < parameters_.size(); ++slot) {
    if (const auto lent = borrowed_.find(parameters_[slot].name); lent != borrowed_.end()) {
      lent->second.push_back(slot);
      continue;
    }
    const auto [entry, is_new] = known.emplace(parameters_[slot].name, trained_.size());
    if (is_new) trained_.emplace_back();
    auto& trained = trained_[entry->second];
    trained.slots.push_back(slot);
    assert(parameters_[slot].shape == declared(trained).shape);
  }
  for (auto& trained : trained_) trained.rule = &rule_for(config_, declared(trained));
}

const Optimizer::Slots& Optimizer::slots_of(const std::string& name) const {
  if (const auto lent = borrowed_.find(name); lent != borrowed_.end()) return lent->second;
  const auto found = std::ranges::find_if(
      trained_, [&](const Trained& trained) { return declared(trained).name == name; });
  assert(found != trained_.end() && "no such parameter in this stage");
  return found->slots;
}

std::string Optimizer::moment_name(const Trained& trained, std::size_t moment) const {
  return declared(trained).name + "." + std::string(trained.rule->moments[moment]);
}

void Optimizer::place(Stream& stream, const Trained& trained, Tensor value,
                      Weights& weights) const {
  for (const auto slot : trained.slots) {
    auto& weight = weights.slots[slot];
    weight.value = value;
    if (parameters_[slot].use == Parameter::Use::matrix)
      weight.packed = kernels::PackedLinear(stream, linear_shape(parameters_[slot], precision_),
                                            weight.value.f32());
  }
}

void Optimizer::make_moments(Stream& stream) {
  for (auto& trained : trained_)
    while (trained.moments.size() < trained.rule->moments.size())
      trained.moments.push_back(filled(stream, declared(trained).shape, 0));
}

WeightsPtr Optimizer::initial(Stream& stream, std::uint64_t seed) const {
  auto weights = std::make_shared<Weights>();
  weights->slots.resize(parameters_.size());
  for (const auto& trained : trained_)
    place(stream, trained, initial_value(stream, declared(trained), seed), *weights);
  for (const auto& buffer : buffers_)
    weights->buffers.push_back(filled(stream, buffer.shape, buffer.initial));
  return weights;
}

Result<WeightsPtr> Optimizer::from(Stream& stream, const std::vector<NamedTensor>& tensors,
                                   std::int64_t version) const {
  const auto given = by_name(tensors);
  auto weights = std::make_shared<Weights>();
  weights->version = version;
  weights->slots.resize(parameters_.size());
  for (const auto& trained : trained_) {
    auto tensor = wanted(given, declared(trained).name, declared(trained).shape);
    if (!tensor) return tensor.error();
    place(stream, trained, *tensor, *weights);
  }
  for (const auto& buffer : buffers_) {
    auto tensor = wanted(given, buffer.name, buffer.shape);
    if (!tensor) return tensor.error();
    weights->buffers.push_back(*tensor);
  }
  return WeightsPtr(std::move(weights));
}

void Optimizer::add_own_uses(Stream& stream, StageGradients& gradients, const Slots& slots) const {
  Tensor& first = gradients.slots[slots[0]];
  for (std::size_t use = 1; use < slots.size(); ++use) {
    const Tensor later = std::exchange(gradients.slots[slots[use]], {});
    if (!later.empty()) kernels::accumulate(stream, first.f32(), later.f32(), first.count());
  }
}

Tensor Optimizer::gradient(Stream& stream, StageGradients& gradients,
                           const std::string& name) const {
  const auto& slots = slots_of(name);
  add_own_uses(stream, gradients, slots);
  return gradients.slots[slots[0]];
}

void Optimizer::add_use(Stream& stream, StageGradients& gradients, const std::string& name,
                        const Tensor& other) const {
  // Into new memory: our own may be on its way to the other stage. The order does not matter, since
  // a + b = b + a to the bit.
  const Tensor own = gradient(stream, gradients, name);
  Tensor sum = stream.make(own.shape());
  kernels::combine(stream, 1, own.f32(), 1, other.f32(), sum.f32(), sum.count());
  gradients.slots[slots_of(name)[0]] = std::move(sum);
}

std::vector<SquaredNorm> Optimizer::squared_norms(Stream& stream, StageGradients& gradients) const {
  std::vector<SquaredNorm> squares;
  squares.reserve(trained_.size());
  for (const auto& trained : trained_) {
    add_own_uses(stream, gradients, trained.slots);
    const Tensor& gradient = gradients.slots[trained.slots[0]];
    squares.push_back({declared(trained).name,
                       kernels::sum_of_squares(stream, gradient.f32(), gradient.count())});
  }
  return squares;
}

WeightsPtr Optimizer::step(Stream& stream, const WeightsPtr& weights, StageGradients gradients,
                           double norm) {
  assert(std::isfinite(norm) && "a poisoned step is the caller's to halt at");
  // As torch.nn.utils.clip_grad_norm_ has it.
  const double scale = config_.clip_norm > 0 ? std::min(1.0, config_.clip_norm / (norm + 1e-6)) : 1;
  make_moments(stream);
  auto next = std::make_shared<Weights>();
  next->version = weights->version + 1;
  next->slots.resize(parameters_.size());
  for (auto& trained : trained_) {
    add_own_uses(stream, gradients, trained.slots);
    const Parameter& parameter = declared(trained);
    const Tensor gradient = std::exchange(gradients.slots[trained.slots[0]], {});
    Tensor value = stream.make(parameter.shape);
    trained.rule->apply(stream, {.config = config_,
                                 .parameter = parameter,
                                 .step = weights->version,
                                 .gradient_scale = scale,
                                 .weight = weights->slots[trained.slots[0]].value,
                                 .gradient = gradient,
                                 .next = value,
                                 .moments = trained.moments});
    place(stream, trained, std::move(value), *next);
  }
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    next->buffers.push_back(next_buffer(stream, i, weights->buffers[i], gradients));
  return next;
}

Tensor Optimizer::next_buffer(Stream& stream, std::size_t buffer, const Tensor& last,
                              const StageGradients& gradients) const {
  const float share = buffers_[buffer].share;
  Tensor next;
  for (const auto& statistics : gradients.statistics) {
    const float* from = next.empty() ? last.f32() : next.f32();
    if (next.empty()) next = stream.make(last.shape());
    kernels::combine(stream, 1 - share, from, share, statistics[buffer].f32(), next.f32(),
                     next.count());
  }
  return next.empty() ? last : next;
}

Moments Optimizer::moments() const {
  Moments moments;
  moments.reserve(trained_.size());
  for (const auto& trained : trained_) moments.push_back(trained.moments);
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
  const auto given = by_name(state);
  std::vector<std::vector<Tensor>> restored;
  for (const auto& trained : trained_) {
    auto& moments = restored.emplace_back();
    for (std::size_t i = 0; i < trained.rule->moments.size(); ++i) {
      auto tensor = wanted(given, moment_name(trained, i), declared(trained).shape);
      if (!tensor) return tensor.error();
      auto& copy = moments.emplace_back(stream.make(tensor->shape()));
      kernels::copy_rows(stream, {tensor->f32(), 0}, {copy.f32(), 0}, 1, copy.count());
    }
  }
  for (std::size_t i = 0; i < trained_.size(); ++i) trained_[i].moments = std::move(restored[i]);
  return Done{};
}

}  // namespace troupe::models
