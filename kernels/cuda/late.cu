#include <stdexcept>
#include <string>
#include <vector>

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

/// A weight with its moments, on the way through steps that are yet to come.
struct Ahead {
  static constexpr std::size_t most_steps = 128;  // A kernel's arguments are at most 4 KiB.
  AdamForecast::Step steps[most_steps];
  int count;
  float beta1, beta2, rest1, rest2, eps, decay;
  bool is_decoupled, is_guarded;
  const float *w, *m, *v, *phi;
  float* y;

  __device__ void operator()(std::int64_t i) const {
    float weight = w[i], first = m[i], second = v[i], gradient = phi ? phi[i] : 0.0f;
    for (int s = 0; s < count; ++s) {
      const float lr = static_cast<float>(steps[s].lr);
      if (is_decoupled) weight *= 1 - lr * decay;
      const float g = is_decoupled ? gradient : gradient + decay * weight;
      gradient = 0;
      first = beta1 * first + rest1 * g;
      if (is_guarded) {
        const float grown = beta2 * second + rest2 * g * g;
        second = second < grown ? grown : second;
      }
      weight -= lr * static_cast<float>(steps[s].m_scale) * first /
                (sqrtf(second) * static_cast<float>(steps[s].v_scale) + eps);
    }
    y[i] = weight;
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

struct Usual {
  float scale, floor;
  const float* x;
  float* y;
  __device__ void operator()(std::int64_t i) const { y[i] = scale * sqrtf(x[i]) + floor; }
};

struct Share {
  const float *now, *then, *usual;
  float* y;
  __device__ void operator()(std::int64_t i) const {
    y[i] = 1 / (1 + fabsf(now[i] - then[i]) / usual[i]);
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

struct Invert {
  const float* x;
  Inverses* blocks;
  std::int64_t count;
  __device__ void operator()(std::int64_t block) const {
    double sum = 0, most = 0;
    const std::int64_t first = block * block_of_sums;
    for (auto i = first; i < std::min(first + block_of_sums, count); ++i) {
      const double inverse = 1 / static_cast<double>(x[i]);
      sum += inverse;
      most = most < inverse ? inverse : most;
    }
    blocks[block].sum = sum;
    blocks[block].most = most;
  }
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
  if (forecast.steps.size() > Ahead::most_steps)
    throw std::length_error("found a forecast of " + std::to_string(forecast.steps.size()) +
                            " steps; on a GPU there may be " + std::to_string(Ahead::most_steps));
  Ahead ahead{{},
              static_cast<int>(forecast.steps.size()),
              static_cast<float>(forecast.beta1),
              static_cast<float>(forecast.beta2),
              static_cast<float>(1 - forecast.beta1),
              static_cast<float>(1 - forecast.beta2),
              static_cast<float>(forecast.eps),
              static_cast<float>(forecast.weight_decay),
              forecast.decay == WeightDecay::decoupled,
              forecast.second_moment == AdamForecast::SecondMoment::guarded,
              w,
              m,
              v,
              phi,
              y};
  std::copy(forecast.steps.begin(), forecast.steps.end(), ahead.steps);
  for_elements(stream, count, ahead);
}

void average_squares(Stream& stream, const SquareAverage& rule, const float* x, float* average,
                     std::int64_t count) {
  const AverageFactors factors{static_cast<float>(rule.keep), static_cast<float>(1 - rule.keep),
                               static_cast<float>(rule.scale)};
  for_elements(stream, count, Average{queue_of(stream).changing(factors), x, average});
}

void usual_step(Stream& stream, const UsualStep& rule, const float* x, float* y,
                std::int64_t count) {
  for_elements(stream, count,
               Usual{static_cast<float>(rule.scale), static_cast<float>(rule.floor), x, y});
}

void gap_share(Stream& stream, const float* now, const float* then, const float* usual, float* y,
               std::int64_t count) {
  for_elements(stream, count, Share{now, then, usual, y});
}

void compensate_delay(Stream& stream, double strength, const float* now, const float* then,
                      float* g, std::int64_t count) {
  for_elements(stream, count, Compensate{static_cast<float>(strength), now, then, g});
}

Inverses inverses(Stream& stream, const float* x, std::int64_t count) {
  const std::int64_t blocks = blocks_of_sums(count);
  Tensor there = stream.make({2 * blocks}, DType::f64);
  for_elements(stream, blocks, Invert{x, static_cast<Inverses*>(there.raw()), count});
  std::vector<Inverses> parts(static_cast<std::size_t>(blocks));
  read_back(stream, there, parts.data());
  Inverses all;
  for (const auto& part : parts) all = {all.sum + part.sum, std::max(all.most, part.most)};
  return all;
}

}  // namespace troupe::kernels::cuda
