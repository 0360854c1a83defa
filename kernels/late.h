#pragma once

#include <cstdint>
#include <span>

#include "core/memory/stream.h"
#include "kernels/steps.h"

namespace troupe::kernels {

// Delay compensation: kernels that correct late gradients and predict later weights. All are
// elementwise; each exists for float and double.

/// y = m_scale m / ( sqrt(v) v_scale + eps ): the direction of Adam's last step. `y` may be `m`.
struct AdamDirection {
  double m_scale, v_scale, eps;
};
void adam_direction(Stream& stream, const AdamDirection& direction, const float* m, const float* v,
                    float* y, std::int64_t count);
void adam_direction(Stream& stream, const AdamDirection& direction, const double* m,
                    const double* v, double* y, std::int64_t count);

/// A forecast of weights after several Adam steps. The first gradient is `phi`, or zero if `phi` is
/// null; later ones are zero. Changes no moment. `guarded`: v = max(v, b2 v + (1 - b2) g^2).
/// `frozen`: v stays, so that a weight whose v is 0 leaps by g / eps.
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

/// y = scale sqrt(x) + floor: a usual step computed from an average of squares.
struct UsualStep {
  double scale, floor;
};
void usual_step(Stream& stream, const UsualStep& rule, const float* x, float* y,
                std::int64_t count);
void usual_step(Stream& stream, const UsualStep& rule, const double* x, double* y,
                std::int64_t count);

/// Weights now and then. usual_step() of `spread` is the distance that they usually move.
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

/// The sum and the maximum of 1 / x.
struct Inverses {
  double sum = 0, most = 0;
};
/// Computes the inverses of each block of `block_of_sums` elements in double, in 16 lanes: element
/// i of a block goes to lane i % 16. `blocks` must lie where the stream's kernels compute.
void inverses_of_blocks(Stream& stream, const float* x, std::int64_t count, Inverses* blocks);
void inverses_of_blocks(Stream& stream, const double* x, std::int64_t count, Inverses* blocks);

}  // namespace troupe::kernels
