#include "storage/data/mixture.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace troupe::storage {
namespace {

/// The number that separates the arrangement of blocks from the orders of the sources.
constexpr std::uint64_t use_of_seed = 0x6d69787475726573;

}  // namespace

MixedOrder::MixedOrder(Mixture mixture, SampleOrder::Kind kind, std::uint64_t seed,
                       std::int64_t global, const std::vector<std::int64_t>& counts)
    : mixture_(std::move(mixture)), seed_(seed ^ use_of_seed) {
  assert(counts.size() == mixture_.sources.size());
  std::int64_t first = 0;
  for (const auto count : counts) {
    orders_.emplace_back(kind, seed, count);
    firsts_.push_back(first);
    first += count;
  }
  for (std::size_t i = 0; i < mixture_.phases.size(); ++i) {
    const auto& phase = mixture_.phases[i];
    Stretch stretch;
    // No run gets to a position that does not fit.
    if (__builtin_mul_overflow(phase.from, global, &stretch.position))
      stretch.position = std::numeric_limits<std::int64_t>::max();
    for (const auto& part : phase.parts) stretch.size += part.weight;
    stretch.before.assign(mixture_.sources.size(), 0);
    if (i > 0) {
      // The block that the change of weights cuts short counts as one.
      const auto& last = stretches_.back();
      stretch.block = last.block + (stretch.position - last.position + last.size - 1) / last.size;
      stretch.before = drawn_before(stretch.position);
    }
    stretches_.push_back(std::move(stretch));
  }
}

std::size_t MixedOrder::phase_at(std::int64_t position) const {
  std::size_t phase = stretches_.size() - 1;
  while (stretches_[phase].position > position) --phase;
  return phase;
}

std::size_t MixedOrder::source_at(std::size_t phase, std::int64_t block, std::int64_t slot) const {
  auto left = permute(seed_, block, slot, stretches_[phase].size);
  for (const auto& part : mixture_.phases[phase].parts) {
    if (left < part.weight) return part.source;
    left -= part.weight;
  }
  return 0;
}

std::vector<std::int64_t> MixedOrder::drawn_before(std::int64_t position) const {
  assert(position >= 0);
  // At the beginning of a phase its predecessor is complete.
  auto phase = phase_at(std::max<std::int64_t>(position - 1, 0));
  const auto& stretch = stretches_[phase];
  const auto blocks = (position - stretch.position) / stretch.size;
  const auto rest = (position - stretch.position) % stretch.size;
  auto drawn = stretch.before;
  for (const auto& part : mixture_.phases[phase].parts) drawn[part.source] += blocks * part.weight;
  for (std::int64_t slot = 0; slot < rest; ++slot)
    ++drawn[source_at(phase, stretch.block + blocks, slot)];
  return drawn;
}

MixedOrder::Drawn MixedOrder::at(std::int64_t position) const {
  assert(position >= 0);
  const auto phase = phase_at(position);
  const auto& stretch = stretches_[phase];
  const auto block = stretch.block + (position - stretch.position) / stretch.size;
  const auto source = source_at(phase, block, (position - stretch.position) % stretch.size);
  return {source, orders_[source].at(drawn_before(position)[source])};
}

}  // namespace troupe::storage
