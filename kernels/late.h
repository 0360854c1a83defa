#pragma once

#include <cstdint>
#include <span>

#include "core/memory/stream.h"
#include "kernels/steps.h"

namespace troupe::kernels {

// What mends gradients that come late, and what expects weights that come later. All elementwise;
// each is there for float and double.

/// y = m_scale m / ( sqrt(v) v_scale + eps ): what Adam's last step went along. `y` may be `m`.
struct AdamDirection {
  double m_scale, v_scale, eps;
};
void adam_direction(Stream& stream, const AdamDirection& direction, const float* m, const float* v,
                    float* y, std::int64_t count);
void adam_direction(Stream& stream, const AdamDirection& direction, const double* m,
                    const double* v, double* y, std::int64_t count);

/// Adam's steps on gradients that are zero, but for the first one, which is `phi` where that is not
/// null. Changes no moment. `guarded`: v grows with those gradients, as max(v, b2 v + (1 - b2)
/// g^2); `frozen`: it stays, so that where it is 0 a weight leaps by g / eps.
struct AdamForecast {
  struct Step {
    double lr, m_scale, v_scale;
  };
  enum class SecondMoment : std::uint8_t { guarded, frozen };
  std::span<const Step> steps;
  double beta1, beta2, eps, weight_decay;
  WeightDecay decay;
  SecondMoment second_moment;
};
void adam_forecast(Stream& stream, const AdamForecast& forecast, const float* w, const float* m,
                   const float* v, const float* phi, float* y, std::int64_t count);
void adam_forecast(Stream& stream, const AdamForecast& forecast, const double* w, const double* m,
                   const double* v, const double* phi, double* y, std::int64_t count);

/// average = keep average + (1 - keep) (scale x)^2.
struct SquareAverage {
  double keep, scale;
};
void average_squares(Stream& stream, const SquareAverage& rule, const float* x, float* average,
                     std::int64_t count);
void average_squares(Stream& stream, const SquareAverage& rule, const double* x, double* average,
                     std::int64_t count);

/// y = scale sqrt(x) + floor.
struct UsualStep {
  double scale, floor;
};
void usual_step(Stream& stream, const UsualStep& rule, const float* x, float* y,
                std::int64_t count);
void usual_step(Stream& stream, const UsualStep& rule, const double* x, double* y,
                std::int64_t count);

/// How far weights have gone, and how far they usually go: usual_step() of `spread`.
template <class T>
struct GapBetween {
  const T *now, *then, *spread;
};
/// share = 1 / ( 1 + |now - then| / usual ), and gradient *= share. Either may be null.
void gap_share(Stream& stream, const UsualStep& rule, const GapBetween<float>& gap, float* share,
               float* gradient, std::int64_t count);
void gap_share(Stream& stream, const UsualStep& rule, const GapBetween<double>& gap, double* share,
               double* gradient, std::int64_t count);

/// g += strength g g (now - then).
void compensate_delay(Stream& stream, double strength, const float* now, const float* then,
                      float* g, std::int64_t count);
void compensate_delay(Stream& stream, double strength, const double* now, const double* then,
                      double* g, std::int64_t count);

/// Of 1 / x: in blocks, as sum_of_squares has it.
struct Inverses {
  double sum = 0, most = 0;
};
Inverses inverses(Stream& stream, const float* x, std::int64_t count);
Inverses inverses(Stream& stream, const double* x, std::int64_t count);

}  // namespace troupe::kernels
