#include "kernels/dropout.h"

#include <cassert>
#include <cmath>

#include "kernels/cpu/parts/pieces.h"
#include "kernels/cpu/parts/targets.h"
#include "kernels/device_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dropout.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/parts/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR

using Wide = hn::Repartition<std::uint64_t, Floats>;
using Words = hn::Repartition<std::uint32_t, Floats>;
using WideVector = hn::Vec<Wide>;
using WordVector = hn::Vec<Words>;

constexpr std::int64_t words_at_once = 2 * lanes_of<Words>;

/// Computes philox() with one vector per word and one counter per wide lane. Only the lower half of
/// a lane counts; the upper half is ignored.
HWY_INLINE void philox_of(WideVector (&counter)[4], std::uint64_t seed) {
  const Wide d;
  const Words words;
  const auto product = [=](WideVector word, std::uint32_t factor) HWY_ATTR {
    return hn::MulEven(hn::BitCast(words, word), hn::Set(words, factor));
  };
  auto key = static_cast<std::uint32_t>(seed), other_key = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const WideVector a = product(counter[0], 0xD2511F53u);
    const WideVector b = product(counter[2], 0xCD9E8D57u);
    counter[0] = hn::Xor(hn::Xor(hn::ShiftRight<32>(b), counter[1]), hn::Set(d, key));
    counter[1] = b;
    counter[2] = hn::Xor(hn::Xor(hn::ShiftRight<32>(a), counter[3]), hn::Set(d, other_key));
    counter[3] = a;
    key += 0x9E3779B9u;
    other_key += 0xBB67AE85u;
  }
}

/// Computes the words of consecutive elements, beginning with the first of `block`, in two vectors.
HWY_INLINE void words_from(const RandomKey& key, std::uint32_t block, WordVector& first,
                           WordVector& second) {
  const Wide d;
  const Words words;
  // Even lanes take the first half of the blocks and odd lanes the second. Then interleaving the
  // lower and the upper halves of lane pairs gives the order of the elements.
  const WideVector lane = hn::Iota(d, 0);
  const WideVector step = hn::ShiftRight<1>(lane);
  const WideVector half = hn::Set(d, lanes_of<Wide> / 2);
  const auto odd = hn::Ne(hn::And(lane, hn::Set(d, 1)), hn::Zero(d));
  const WideVector offset = hn::IfThenElse(odd, hn::Add(step, half), step);
  WideVector counter[4] = {hn::Add(hn::Set(d, block), offset), hn::Set(d, key.operation),
                           hn::Set(d, key.sample), hn::Set(d, key.step)};
  philox_of(counter, key.seed);
  const WideVector lower_half = hn::Set(d, 0xffffffffu);
  const WideVector low = hn::Or(hn::And(counter[0], lower_half), hn::ShiftLeft<32>(counter[1]));
  const WideVector high = hn::Or(hn::And(counter[2], lower_half), hn::ShiftLeft<32>(counter[3]));
  first = hn::BitCast(words, hn::InterleaveLower(d, low, high));
  second = hn::BitCast(words, hn::InterleaveUpper(d, low, high));
}

#endif

/// Processes `count` elements from the first of `block` on, in the sample that `key` names.
/// `kept_from` is the smallest 24-bit number that keeps an element.
void dropout_piece(const RandomKey& key, std::uint32_t block, std::int32_t kept_from, float scale,
                   const float* x, float* y, std::int64_t count) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  const auto keep = [=](WordVector words, std::int64_t at) HWY_ATTR {
    const auto number = hn::BitCast(di, hn::ShiftRight<8>(words));
    const auto dropped = hn::RebindMask(d, hn::Lt(number, hn::Set(di, kept_from)));
    const auto scaled = hn::Mul(hn::LoadU(d, x + at), hn::Set(d, scale));
    hn::StoreU(hn::IfThenZeroElse(dropped, scaled), d, y + at);
  };
  for (; i + words_at_once <= count; i += words_at_once, block += words_at_once / 4) {
    WordVector first, second;
    words_from(key, block, first, second);
    keep(first, i);
    keep(second, i + lanes_of<Floats>);
  }
#endif
  for (; i < count; i += 4, ++block) {
    const auto words = key.words(block);
    for (std::int64_t j = i; j < std::min(i + 4, count); ++j) {
      const auto number = static_cast<std::int32_t>(words[static_cast<std::size_t>(j - i)] >> 8);
      y[j] = number >= kept_from ? x[j] * scale : 0.0f;
    }
  }
}

}  // namespace
}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::kernels {

using namespace cpu;

HWY_EXPORT(dropout_piece);

void dropout(Stream& stream, const RandomKey& key, float rate, const float* x, float* y,
             std::int64_t samples, std::int64_t per_sample) {
  if (const auto* there = kernels_of(stream))
    return there->dropout(stream, key, rate, x, y, samples, per_sample);
  assert(rate >= 0 && rate < 1 && per_sample <= std::int64_t{1} << 34);
  static_assert(elements_per_piece % 4 == 0, "a piece begins with a block of four words");
  const std::int64_t pieces = (per_sample + elements_per_piece - 1) / elements_per_piece;
  stream.for_each(samples * pieces, [&](std::int64_t i) {
    const std::int64_t sample = i / pieces;
    const std::int64_t first = i % pieces * elements_per_piece;
    const std::int64_t start = sample * per_sample + first;
    RandomKey sample_key = key;
    sample_key.sample += static_cast<std::uint32_t>(sample);
    drop_elements(sample_key, rate, first, x + start, y + start,
                  std::min(elements_per_piece, per_sample - first));
  });
}

void cpu::drop_elements(const RandomKey& key, float rate, std::int64_t first, const float* x,
                        float* y, std::int64_t count) {
  // Tests uniform(word) >= rate in integers: uniform() lies on a grid of 2^-24.
  const auto kept_from = static_cast<std::int32_t>(std::ceil(rate * 0x1p24f));
  HWY_DYNAMIC_DISPATCH(dropout_piece)
  (key, static_cast<std::uint32_t>(first / 4), kept_from, 1 / (1 - rate), x, y, count);
}

}  // namespace troupe::kernels

#endif
