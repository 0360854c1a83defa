#include "simulation/model.h"

#include <array>
#include <span>

namespace troupe::simulation {
namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const std::array<std::uint64_t, 2> words = {a, b};
  return checksum_of(std::as_bytes(std::span(words)));
}

}  // namespace

Digest TinyModel::read(std::int64_t steps_done) const {
  return storage::ids_of(terms_, steps_done * terms_.global);
}

TinyModel::Weights TinyModel::initial() const {
  Weights weights;
  for (int unit = 0; unit < units_; ++unit)
    weights.push_back(mix(terms_.seed, static_cast<std::uint64_t>(unit)));
  return weights;
}

std::uint64_t TinyModel::gradient(std::uint64_t weight, const Digest& samples) {
  return mix(mix(weight, samples.high), samples.low);
}

std::uint64_t TinyModel::decide(const Weights& gradients) {
  std::uint64_t decided = 0;
  for (const auto gradient : gradients) decided = mix(decided, gradient);
  return decided;
}

std::uint64_t TinyModel::apply(std::uint64_t weight, std::uint64_t decided) {
  return mix(weight, decided);
}

const TinyModel::Weights& TinyModel::after(std::int64_t steps) const {
  if (after_.empty()) after_.push_back(initial());
  while (std::ssize(after_) <= steps) {
    const auto samples = read(std::ssize(after_) - 1);
    Weights next = after_.back();
    Weights gradients;
    for (const auto weight : next) gradients.push_back(gradient(weight, samples));
    const auto decided = decide(gradients);
    for (auto& weight : next) weight = apply(weight, decided);
    after_.push_back(std::move(next));
  }
  return after_[static_cast<std::size_t>(steps)];
}

}  // namespace troupe::simulation
