#include "kernels/rope.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "kernels/cpu/parts/pieces.h"
#include "kernels/cpu/parts/scratch.h"
#include "kernels/cpu/parts/targets.h"
#include "kernels/device_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rope.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/parts/math-inl.h"
#include "kernels/cpu/parts/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace {

/// Returns 1 + x/a (1 + x/b (1 + x/c ...)), a Taylor series with divisors a, b, c, ...
HWY_INLINE DoubleVector series(DoubleVector) { return hn::Set(Doubles(), 1.0); }
template <class... Further>
HWY_INLINE DoubleVector series(DoubleVector x, double divisor, Further... further) {
  return fused(hn::Mul(x, hn::Set(Doubles(), 1 / divisor)), series(x, further...),
               hn::Set(Doubles(), 1.0));
}

/// Computes sine and cosine of position * frequencies[i] for angles below 2^30. Only the final
/// rounding to float loses digits. `count` is a multiple of virtual_lanes.
void fill_turns(double position, const double* frequencies, std::int64_t count, float* cosines,
                float* sines) {
  const Doubles d;
  const hn::RebindToSigned<Doubles> whole;
  const hn::Rebind<float, Doubles> floats;
  const auto constant = [=](double value) HWY_ATTR { return hn::Set(d, value); };
  for (std::int64_t i = 0; i < count; i += lanes_of<Doubles>) {
    const DoubleVector angle = hn::Mul(hn::LoadU(d, frequencies + i), constant(position));
    // angle = n pi/2 + r with |r| at most pi/4. Adding 1.5 * 2^52 rounds to an integer and leaves
    // it in the lowest bits; pi/2 is split into three parts.
    const DoubleVector shift = constant(0x1.8p52);
    const DoubleVector shifted = fused(angle, constant(0x1.45f306dc9c883p-1), shift);
    const DoubleVector n = hn::Sub(shifted, shift);
    const DoubleVector r = fused(n, constant(0x1.f1976b7ed8fbcp-110),
                                 fused(n, constant(-0x1.1a62633145c07p-54),
                                       fused(n, constant(-0x1.921fb54442d18p+0), angle)));
    const DoubleVector square = hn::Neg(hn::Mul(r, r));
    const DoubleVector sine =
        hn::Mul(r, series(square, 2 * 3, 4 * 5, 6 * 7, 8 * 9, 10 * 11, 12 * 13, 14 * 15));
    const DoubleVector cosine =
        series(square, 1 * 2, 3 * 4, 5 * 6, 7 * 8, 9 * 10, 11 * 12, 13 * 14, 15 * 16);
    // Each quarter turn maps (cosine, sine) to (-sine, cosine).
    const auto quarters = hn::BitCast(whole, shifted);
    const auto has = [=](auto number, std::int64_t bit) HWY_ATTR {
      return hn::RebindMask(d, hn::TestBit(number, hn::Set(whole, bit)));
    };
    const auto odd = has(quarters, 1);
    const DoubleVector turned_sine = hn::IfThenElse(odd, cosine, sine);
    const DoubleVector turned_cosine = hn::IfThenElse(odd, sine, cosine);
    const auto negative_sine = has(quarters, 2);
    const auto negative_cosine = has(hn::Add(quarters, hn::Set(whole, 1)), 2);
    const auto store = [=](auto negative, DoubleVector value, float* to) HWY_ATTR {
      const auto signed_value = hn::IfThenElse(negative, hn::Neg(value), value);
      hn::StoreU(hn::DemoteTo(floats, signed_value), floats, to);
    };
    store(negative_sine, turned_sine, sines + i);
    store(negative_cosine, turned_cosine, cosines + i);
  }
}

void turn_pairs(float* x, const float* cosines, const float* sines, std::int64_t pairs) {
  each_vector(pairs, [=](auto at, std::int64_t i) HWY_ATTR {
    const auto first = at.load(x + i), second = at.load(x + pairs + i);
    const auto cosine = at.load(cosines + i), sine = at.load(sines + i);
    at.store(fused(first, cosine, hn::Neg(hn::Mul(second, sine))), x + i);
    at.store(fused(first, sine, hn::Mul(second, cosine)), x + pairs + i);
  });
}

}  // namespace
}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::kernels {

using namespace cpu;

HWY_EXPORT(fill_turns);
HWY_EXPORT(turn_pairs);

namespace {

/// Returns the natural logarithm of a positive number, to a few units in the last place.
double logarithm(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  // x = 2^n m, with m from 1 to 2; log m = 2 artanh((m - 1) / (m + 1)).
  const auto n = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
  const double m = std::bit_cast<double>((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);
  const double y = (m - 1) / (m + 1), square = y * y;
  double sum = 0;
  for (int k = 37; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return n * 0x1.62e42fefa39efp-1 + 2 * y * sum;
}

/// Returns e^-x for x >= 0, with a relative error of some 1e-14 x.
double decay(double x) {
  // Halve x until a short series suffices, then square the result as often.
  int halvings = 0;
  for (; x > 0.01; x /= 2) ++halvings;
  double sum = 1;
  for (int k = 7; k >= 1; --k) sum = 1 - sum * x / k;
  for (; halvings > 0; --halvings) sum *= sum;
  return sum;
}

/// Writes the first numbers of all pairs, then the second ones.
void divide_neighbours(const float* x, std::int64_t pairs, float* halves) {
  for (std::int64_t i = 0; i < pairs; ++i) {
    halves[i] = x[2 * i];
    halves[pairs + i] = x[2 * i + 1];
  }
}

void join_neighbours(const float* halves, std::int64_t pairs, float* x) {
  for (std::int64_t i = 0; i < pairs; ++i) {
    x[2 * i] = halves[i];
    x[2 * i + 1] = halves[pairs + i];
  }
}

// Tables are padded to whole vectors of any width.
constexpr std::int64_t table_size(std::int64_t pairs) { return (pairs + 15) / 16 * 16; }

}  // namespace

double rope_step(const RopeForm& form, std::int64_t width) {
  return 2 * logarithm(form.theta) / static_cast<double>(form.turned(width));
}

void rope(Stream& stream, Rotation rotation, HeadsOut x, std::int64_t batch, std::int64_t length,
          std::int64_t heads, std::int64_t width, const RopeForm& form, std::int64_t first) {
  const std::int64_t turned = form.turned(width);
  assert(turned % 2 == 0 && turned <= width && form.theta >= 1);
  const std::int64_t pairs = turned / 2, table = table_size(pairs);
  if (const auto* there = kernels_of(stream))
    return there->layers.rope(stream, rotation, x, batch, length, heads, width, form, first);
  const bool is_apart = form.pairs == RopeForm::Pairs::neighbours;
  const double step = rope_step(form, width);
  const BlockHandle block = stream.memory().take(static_cast<std::size_t>(table) * sizeof(double));
  auto* frequencies = reinterpret_cast<double*>(block.get()->memory);
  std::fill_n(frequencies, table, 0.0);
  for (std::int64_t i = 0; i < pairs; ++i)
    frequencies[i] = form.scaled(decay(static_cast<double>(i) * step), i);

  constexpr std::int64_t positions_per_piece = 16;
  for_pieces(stream, length, positions_per_piece, [&](std::int64_t begin, std::int64_t size) {
    Scratch scratch(stream, 4 * table);
    float* cosines = scratch.take(table);
    float* sines = scratch.take(table);
    float* halves = scratch.take(2 * table);
    for (std::int64_t row = begin; row < begin + size; ++row) {
      const auto turns = static_cast<double>(first + row);
      HWY_DYNAMIC_DISPATCH(fill_turns)
      (rotation == Rotation::forward ? turns : -turns, frequencies, table, cosines, sines);
      if (form.stretch != 1)
        for (std::int64_t i = 0; i < pairs; ++i) {
          cosines[i] *= form.stretch;
          sines[i] *= form.stretch;
        }
      for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t head = 0; head < heads; ++head) {
          float* const numbers = x.data + (b * length + row) * x.row + head * width;
          if (is_apart) divide_neighbours(numbers, pairs, halves);
          HWY_DYNAMIC_DISPATCH(turn_pairs)(is_apart ? halves : numbers, cosines, sines, pairs);
          if (is_apart) join_neighbours(halves, pairs, numbers);
        }
    }
  });
}

}  // namespace troupe::kernels
#endif
