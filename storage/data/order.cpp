#include "storage/data/order.h"

#include <bit>
#include <cassert>

#include "core/random.h"
#include "storage/data/mixture.h"

namespace troupe::storage {
namespace {

constexpr int rounds = 4;
/// The mark of this use of Philox, in a word of the counter.
constexpr std::uint32_t purpose = 0x6f726472;

/// A Feistel network on numbers of 2 * `half` bits: the smallest power of four that is at least
/// `count`.
struct Network {
  std::uint64_t seed;
  std::uint64_t pass;
  int half;

  Network(std::uint64_t seed, std::int64_t pass, std::int64_t count)
      : seed(seed),
        pass(static_cast<std::uint64_t>(pass)),
        half((std::bit_width(static_cast<std::uint64_t>(count - 1)) + 1) / 2) {}

  std::uint32_t round(int number, std::uint32_t half_block) const {
    const auto words =
        philox({half_block, purpose + static_cast<std::uint32_t>(number),
                static_cast<std::uint32_t>(pass), static_cast<std::uint32_t>(pass >> 32)},
               {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
    return words[0] & static_cast<std::uint32_t>((std::uint64_t{1} << half) - 1);
  }

  std::uint64_t forward(std::uint64_t x) const {
    auto left = static_cast<std::uint32_t>(x >> half);
    auto right = static_cast<std::uint32_t>(x & ((std::uint64_t{1} << half) - 1));
    for (int i = 0; i < rounds; ++i) {
      left ^= round(i, right);
      std::swap(left, right);
    }
    return (std::uint64_t{left} << half) | right;
  }

  std::uint64_t backward(std::uint64_t x) const {
    auto left = static_cast<std::uint32_t>(x >> half);
    auto right = static_cast<std::uint32_t>(x & ((std::uint64_t{1} << half) - 1));
    for (int i = rounds; i-- > 0;) {
      std::swap(left, right);
      left ^= round(i, right);
    }
    return (std::uint64_t{left} << half) | right;
  }
};

}  // namespace

std::int64_t permute(std::uint64_t seed, std::int64_t pass, std::int64_t i, std::int64_t count) {
  assert(count >= 1 && i >= 0 && i < count);
  const Network network(seed, pass, count);
  auto x = static_cast<std::uint64_t>(i);
  // Walk the cycle until the number is below `count`: that keeps it a bijection. At least a quarter
  // of all numbers are below, so it takes at most four rounds on average.
  do x = network.forward(x);
  while (x >= static_cast<std::uint64_t>(count));
  return static_cast<std::int64_t>(x);
}

std::int64_t unpermute(std::uint64_t seed, std::int64_t pass, std::int64_t sample,
                       std::int64_t count) {
  assert(count >= 1 && sample >= 0 && sample < count);
  const Network network(seed, pass, count);
  auto x = static_cast<std::uint64_t>(sample);
  do x = network.backward(x);
  while (x >= static_cast<std::uint64_t>(count));
  return static_cast<std::int64_t>(x);
}

SampleOrder::SampleOrder(Kind kind, std::uint64_t seed, std::int64_t count)
    : kind_(kind), seed_(seed), count_(count) {
  assert(count >= 1);
}

SampleOrder::SampleOrder(std::shared_ptr<const MixedOrder> mixed) : mixed_(std::move(mixed)) {
  assert(mixed_);
}

Place SampleOrder::at(std::int64_t position) const {
  assert(position >= 0);
  if (mixed_) {
    const auto drawn = mixed_->at(position);
    return {drawn.place.pass, mixed_->first_of(drawn.source) + drawn.place.sample};
  }
  const auto pass = position / count_;
  const auto i = position % count_;
  switch (kind_) {
    case Kind::shuffled:
      return {pass, permute(seed_, pass, i, count_)};
    case Kind::sequential:
      return {pass, i};
  }
  return {};
}

std::vector<std::int64_t> SampleOrder::of_sources(std::int64_t first, std::int64_t count) const {
  if (!mixed_) return {};
  auto samples = mixed_->drawn_before(first + count);
  const auto before = mixed_->drawn_before(first);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] -= before[i];
  return samples;
}

std::int64_t SampleOrder::position_of(const Place& place) const {
  assert(!mixed_);
  switch (kind_) {
    case Kind::shuffled:
      return place.pass * count_ + unpermute(seed_, place.pass, place.sample, count_);
    case Kind::sequential:
      return place.pass * count_ + place.sample;
  }
  return 0;
}

}  // namespace troupe::storage
