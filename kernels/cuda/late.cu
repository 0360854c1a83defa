#include <span>
#include <stdexcept>
#include <string>

#include "kernels/cuda/block_sums.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tile.cuh"
#include "kernels/late.h"

namespace troupe::kernels::cuda {
namespace {

struct DirectionFactors {
  float m_scale, v_scale, eps;
};
struct Direction {
  Changing<DirectionFactors> factors;
  const float *m, *v;
  float* y;
  __device__ void operator()(std::int64_t i) const {
    const DirectionFactors by = factors.read();
    y[i] = by.m_scale * m[i] / (sqrtf(v[i]) * by.v_scale + by.eps);
  }
};

/// Kernel arguments are limited to 4 KiB. The usual few steps need little of the memory for
/// changing numbers.
constexpr std::size_t few_steps = 8, most_steps = 128;

template <std::size_t most>
struct Steps {
  float lr[most], m_scale[most], v_scale[most];
};

/// The rule that carries a weight and its moments through the predicted steps.
template <std::size_t most>
struct Ahead {
  Changing<Steps<most>> steps;
  int count;
  float beta1, beta2, rest1, rest2, eps, decay;
  bool is_decoupled, is_guarded;
  const float *w, *m, *v, *phi;
  float* y;

  // Without read(), which would copy all steps.
  __device__ void operator()(std::int64_t i) const {
    y[i] = steps.place ? weight_after(*steps.place, i) : weight_after(steps.value, i);
  }

 private:
  __device__ float weight_after(const Steps<most>& all, std::int64_t i) const {
    float weight = w[i], first = m[i], second = v[i], gradient = phi ? phi[i] : 0.0f;
    for (int s = 0; s < count; ++s) {
      const float lr = all.lr[s];
      if (is_decoupled) weight *= 1 - lr * decay;
      const float g = is_decoupled ? gradient : gradient + decay * weight;
      gradient = 0;
      first = beta1 * first + rest1 * g;
      if (is_guarded) {
        const float grown = beta2 * second + rest2 * g * g;
        second = second < grown ? grown : second;
      }
      weight -= lr * all.m_scale[s] * first / (sqrtf(second) * all.v_scale[s] + eps);
    }
    return weight;
  }
};

struct AverageFactors {
  float keep, take, scale;
};
struct Average {
  Changing<AverageFactors> factors;
  const float* x;
  float* average;
  __device__ void operator()(std::int64_t i) const {
    const AverageFactors by = factors.read();
    const float sample = by.scale * x[i];
    average[i] = by.keep * average[i] + by.take * (sample * sample);
  }
};

struct UsualFactors {
  float scale, floor;
};
UsualFactors factors_of(const UsualStep& rule) {
  return {static_cast<float>(rule.scale), static_cast<float>(rule.floor)};
}
struct Usual {
  Changing<UsualFactors> factors;
  const float* x;
  float* y;
  __device__ void operator()(std::int64_t i) const {
    const UsualFactors by = factors.read();
    y[i] = by.scale * sqrtf(x[i]) + by.floor;
  }
};

struct Share {
  Changing<UsualFactors> factors;
  GapBetween<float> gap;
  float *share, *gradient;
  __device__ void operator()(std::int64_t i) const {
    const UsualFactors by = factors.read();
    const float usual = by.scale * sqrtf(gap.spread[i]) + by.floor;
    const float part = 1 / (1 + fabsf(gap.now[i] - gap.then[i]) / usual);
    if (share) share[i] = part;
    if (gradient) gradient[i] *= part;
  }
};

struct Compensate {
  float factor;
  const float *now, *then;
  float* g;
  __device__ void operator()(std::int64_t i) const {
    g[i] += factor * g[i] * g[i] * (now[i] - then[i]);
  }
};

struct Most {
  __device__ double operator()(double a, double b) const { return a < b ? b : a; }
};

struct Invert {
  using Result = Inverses;
  double sum = 0, most = 0;

  __device__ void operator()(float x) {
    const double inverse = 1 / static_cast<double>(x);
    sum += inverse;
    most = Most()(most, inverse);
  }
  __device__ Inverses of_lanes() const { return {sum_of_lanes(sum), fold(most, Most())}; }
};

}  // namespace

void adam_direction(Stream& stream, const AdamDirection& direction, const float* m, const float* v,
                    float* y, std::int64_t count) {
  const DirectionFactors factors{static_cast<float>(direction.m_scale),
                                 static_cast<float>(direction.v_scale),
                                 static_cast<float>(direction.eps)};
  for_elements(stream, count, Direction{queue_of(stream).changing(factors), m, v, y});
}

void adam_forecast(Stream& stream, const AdamForecast& forecast, const float* w, const float* m,
                   const float* v, const float* phi, float* y, std::int64_t count) {
  const auto go = [&]<std::size_t most>(Steps<most> steps) {
    for (std::size_t s = 0; s < forecast.steps.size(); ++s) {
      steps.lr[s] = static_cast<float>(forecast.steps[s].lr);
      steps.m_scale[s] = static_cast<float>(forecast.steps[s].m_scale);
      steps.v_scale[s] = static_cast<float>(forecast.steps[s].v_scale);
    }
    for_elements(
        stream, count,
        Ahead<most>{.steps = queue_of(stream).changing(steps),
                    .count = static_cast<int>(forecast.steps.size()),
                    .beta1 = static_cast<float>(forecast.beta1),
                    .beta2 = static_cast<float>(forecast.beta2),
                    .rest1 = static_cast<float>(1 - forecast.beta1),
                    .rest2 = static_cast<float>(1 - forecast.beta2),
                    .eps = static_cast<float>(forecast.eps),
                    .decay = static_cast<float>(forecast.weight_decay),
                    .is_decoupled = forecast.decay == WeightDecay::decoupled,
                    .is_guarded = forecast.second_moment == AdamForecast::SecondMoment::guarded,
                    .w = w,
                    .m = m,
                    .v = v,
                    .phi = phi,
                    .y = y});
  };
  const auto count_of_steps = forecast.steps.size();
  if (count_of_steps > most_steps)
    throw std::length_error("found a forecast of " + std::to_string(count_of_steps) +
                            " steps; on a GPU there may be " + std::to_string(most_steps));
  count_of_steps > few_steps ? go(Steps<most_steps>{}) : go(Steps<few_steps>{});
}

void average_squares(Stream& stream, const SquareAverage& rule, const float* x, float* average,
                     std::int64_t count) {
  const AverageFactors factors{static_cast<float>(rule.keep), static_cast<float>(1 - rule.keep),
                               static_cast<float>(rule.scale)};
  for_elements(stream, count, Average{queue_of(stream).changing(factors), x, average});
}

void usual_step(Stream& stream, const UsualStep& rule, const float* x, float* y,
                std::int64_t count) {
  for_elements(stream, count, Usual{queue_of(stream).changing(factors_of(rule)), x, y});
}

void gap_share(Stream& stream, const UsualStep& rule, const GapBetween<float>& gap, float* share,
               float* gradient, std::int64_t count) {
  for_elements(stream, count,
               Share{queue_of(stream).changing(factors_of(rule)), gap, share, gradient});
}

void compensate_delay(Stream& stream, double strength, const float* now, const float* then,
                      float* g, std::int64_t count) {
  for_elements(stream, count, Compensate{static_cast<float>(strength), now, then, g});
}

void inverses_of_blocks(Stream& stream, const float* x, std::int64_t count, Inverses* blocks) {
  const std::span all(x, static_cast<std::size_t>(count));
  sum_all_blocks<Invert>(stream, {&all, 1}, blocks);
}

}  // namespace troupe::kernels::cuda
