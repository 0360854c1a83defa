#include "kernels/cuda/between_layers.h"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/tile.cuh"

namespace troupe::kernels::cuda {
namespace {

/// Returns 1 + x/a (1 + x/b (1 + x/c ...)), a Taylor series with divisors a, b, c, ...
__device__ inline double series(double) { return 1.0; }
template <class... Further>
__device__ double series(double x, double divisor, Further... further) {
  return fma(x * (1 / divisor), series(x, further...), 1.0);
}

/// Returns e^-x for x >= 0, computed as in kernels/cpu/rope.cpp.
__device__ double decay(double x) {
  int halvings = 0;
  for (; x > 0.01; x /= 2) ++halvings;
  double sum = 1;
  for (int k = 7; k >= 1; --k) sum = 1 - sum * x / k;
  for (; halvings > 0; --halvings) sum *= sum;
  return sum;
}

struct Turn {
  float cosine, sine;
};

/// Computes cosine and sine of an angle below 2^30, as in kernels/cpu/rope.cpp.
__device__ Turn turn_of(double angle) {
  constexpr double shift = 0x1.8p52;
  const double shifted = fma(angle, 0x1.45f306dc9c883p-1, shift);
  const double n = shifted - shift;
  const double r = fma(n, 0x1.f1976b7ed8fbcp-110,
                       fma(n, -0x1.1a62633145c07p-54, fma(n, -0x1.921fb54442d18p+0, angle)));
  const double square = -(r * r);
  const double sine = r * series(square, 2 * 3, 4 * 5, 6 * 7, 8 * 9, 10 * 11, 12 * 13, 14 * 15);
  const double cosine =
      series(square, 1 * 2, 3 * 4, 5 * 6, 7 * 8, 9 * 10, 11 * 12, 13 * 14, 15 * 16);
  // Each quarter turn maps (cosine, sine) to (-sine, cosine).
  const long long quarters = __double_as_longlong(shifted);
  const double turned_sine = quarters & 1 ? cosine : sine;
  const double turned_cosine = quarters & 1 ? sine : cosine;
  return {static_cast<float>((quarters + 1) & 2 ? -turned_cosine : turned_cosine),
          static_cast<float>(quarters & 2 ? -turned_sine : turned_sine)};
}

/// The rotation of a pair of numbers at one position of one sequence, in all heads.
template <class Number>
struct Rotate {
  Heads<Number> x;
  std::int64_t length, heads, width;
  std::int64_t first;  // The position of row 0.
  RopeForm form;
  double step;  // Between the logarithms of neighbouring frequencies.
  bool is_back;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t pairs = form.turned(width) / 2, row = i / pairs, pair = i % pairs;
    const bool is_apart = form.pairs == RopeForm::Pairs::neighbours;
    const std::int64_t one = is_apart ? 2 * pair : pair, other = is_apart ? one + 1 : one + pairs;
    const double turns = static_cast<double>(first + row % length);
    const double frequency = form.scaled(decay(static_cast<double>(pair) * step), pair);
    auto [cosine, sine] = turn_of(frequency * (is_back ? -turns : turns));
    if (form.stretch != 1) {
      cosine *= form.stretch;
      sine *= form.stretch;
    }
    for (std::int64_t head = 0; head < heads; ++head) {
      Number* const at = x.data + row * x.row + head * width;
      const float first = wide(at[one]), second = wide(at[other]);
      at[one] = narrow<Number>(fmaf(first, cosine, -(second * sine)));
      at[other] = narrow<Number>(fmaf(first, sine, second * cosine));
    }
  }
};

}  // namespace

template <class Number>
void rope(Stream& stream, Rotation rotation, Heads<Number> x, std::int64_t batch,
          std::int64_t length, std::int64_t heads, std::int64_t width, const RopeForm& form,
          std::int64_t first) {
  for_elements(stream, batch * length * (form.turned(width) / 2),
               Rotate<Number>{x, length, heads, width, first, form, rope_step(form, width),
                              rotation == Rotation::back});
}

template void rope(Stream&, Rotation, Heads<float>, std::int64_t, std::int64_t, std::int64_t,
                   std::int64_t, const RopeForm&, std::int64_t);
template void rope(Stream&, Rotation, Heads<Float16>, std::int64_t, std::int64_t, std::int64_t,
                   std::int64_t, const RopeForm&, std::int64_t);
template void rope(Stream&, Rotation, Heads<BFloat16>, std::int64_t, std::int64_t, std::int64_t,
                   std::int64_t, const RopeForm&, std::int64_t);

}  // namespace troupe::kernels::cuda
