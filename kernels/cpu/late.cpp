#include "kernels/late.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cpu/parts/pieces.h"
#include "kernels/device_kernels.h"

namespace troupe::kernels {
namespace {

template <class Body>
void each_element(Stream& stream, std::int64_t count, Body body) {
  cpu::for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    for (auto i = first; i < first + size; ++i) body(i);
  });
}

template <class T>
void direction_of(Stream& stream, const AdamDirection& direction, const T* m, const T* v, T* y,
                  std::int64_t count) {
  const T m_scale = static_cast<T>(direction.m_scale), v_scale = static_cast<T>(direction.v_scale);
  const T eps = static_cast<T>(direction.eps);
  each_element(stream, count,
               [=](std::int64_t i) { y[i] = m_scale * m[i] / (std::sqrt(v[i]) * v_scale + eps); });
}

/// The rule that carries a weight and its moments through the predicted steps.
template <class T>
class Ahead {
 public:
  explicit Ahead(const AdamForecast& forecast)
      : steps_(forecast.steps),
        beta1_(static_cast<T>(forecast.beta1)),
        beta2_(static_cast<T>(forecast.beta2)),
        rest1_(static_cast<T>(1 - forecast.beta1)),
        rest2_(static_cast<T>(1 - forecast.beta2)),
        eps_(static_cast<T>(forecast.eps)),
        decay_(static_cast<T>(forecast.weight_decay)),
        is_decoupled_(forecast.decay == WeightDecay::decoupled),
        is_guarded_(forecast.second_moment == AdamForecast::SecondMoment::guarded) {}

  T from(T w, T m, T v, T phi) const {
    for (const auto& step : steps_) {
      const T lr = static_cast<T>(step.lr);
      if (is_decoupled_) w *= 1 - lr * decay_;
      const T g = is_decoupled_ ? phi : phi + decay_ * w;
      phi = 0;
      m = beta1_ * m + rest1_ * g;
      if (is_guarded_) v = std::max(v, beta2_ * v + rest2_ * g * g);
      w -= lr * static_cast<T>(step.m_scale) * m /
           (std::sqrt(v) * static_cast<T>(step.v_scale) + eps_);
    }
    return w;
  }

 private:
  std::span<const AdamForecast::Step> steps_;
  T beta1_, beta2_, rest1_, rest2_, eps_, decay_;
  bool is_decoupled_, is_guarded_;
};

template <class T>
void forecast_of(Stream& stream, const AdamForecast& forecast, const T* w, const T* m, const T* v,
                 const T* phi, T* y, std::int64_t count) {
  const Ahead<T> ahead(forecast);
  each_element(stream, count,
               [=](std::int64_t i) { y[i] = ahead.from(w[i], m[i], v[i], phi ? phi[i] : T(0)); });
}

template <class T>
void average_of(Stream& stream, const SquareAverage& rule, const T* x, T* average,
                std::int64_t count) {
  const T keep = static_cast<T>(rule.keep), take = static_cast<T>(1 - rule.keep);
  const T scale = static_cast<T>(rule.scale);
  each_element(stream, count, [=](std::int64_t i) {
    const T sample = scale * x[i];
    average[i] = keep * average[i] + take * (sample * sample);
  });
}

template <class T>
void usual_of(Stream& stream, const UsualStep& rule, const T* x, T* y, std::int64_t count) {
  const T scale = static_cast<T>(rule.scale), floor = static_cast<T>(rule.floor);
  each_element(stream, count, [=](std::int64_t i) { y[i] = scale * std::sqrt(x[i]) + floor; });
}

template <class T>
void share_of(Stream& stream, const UsualStep& rule, const GapBetween<T>& gap, T* share,
              T* gradient, std::int64_t count) {
  const T scale = static_cast<T>(rule.scale), floor = static_cast<T>(rule.floor);
  each_element(stream, count, [=](std::int64_t i) {
    const T usual = scale * std::sqrt(gap.spread[i]) + floor;
    const T by = 1 / (1 + std::abs(gap.now[i] - gap.then[i]) / usual);
    if (share) share[i] = by;
    if (gradient) gradient[i] *= by;
  });
}

template <class T>
void compensate(Stream& stream, double strength, const T* now, const T* then, T* g,
                std::int64_t count) {
  const T factor = static_cast<T>(strength);
  each_element(stream, count,
               [=](std::int64_t i) { g[i] += factor * g[i] * g[i] * (now[i] - then[i]); });
}

template <class T>
Inverses inverses_of_block(const T* x, std::int64_t count) {
  constexpr std::int64_t lanes = 16;
  std::array<Inverses, lanes> all;
  for (std::int64_t i = 0; i < count; ++i) {
    auto& lane = all[static_cast<std::size_t>(i % lanes)];
    const double inverse = 1 / static_cast<double>(x[i]);
    lane.sum += inverse;
    lane.most = std::max(lane.most, inverse);
  }
  for (std::size_t half = lanes / 2; half > 0; half /= 2)
    for (std::size_t lane = 0; lane < half; ++lane) {
      all[lane].sum += all[lane + half].sum;
      all[lane].most = std::max(all[lane].most, all[lane + half].most);
    }
  return all[0];
}

template <class T>
void invert_blocks(Stream& stream, const T* x, std::int64_t count, Inverses* blocks) {
  cpu::for_pieces(stream, count, block_of_sums, [=](std::int64_t first, std::int64_t size) {
    blocks[first / block_of_sums] = inverses_of_block(x + first, size);
  });
}

}  // namespace

void adam_direction(Stream& stream, const AdamDirection& direction, const float* m, const float* v,
                    float* y, std::int64_t count) {
  if (const auto* there = kernels_of(stream))
    return there->adam_direction(stream, direction, m, v, y, count);
  direction_of(stream, direction, m, v, y, count);
}
void adam_direction(Stream& stream, const AdamDirection& direction, const double* m,
                    const double* v, double* y, std::int64_t count) {
  direction_of(stream, direction, m, v, y, count);
}

void adam_forecast(Stream& stream, const AdamForecast& forecast, const float* w, const float* m,
                   const float* v, const float* phi, float* y, std::int64_t count) {
  if (const auto* there = kernels_of(stream))
    return there->adam_forecast(stream, forecast, w, m, v, phi, y, count);
  forecast_of(stream, forecast, w, m, v, phi, y, count);
}
void adam_forecast(Stream& stream, const AdamForecast& forecast, const double* w, const double* m,
                   const double* v, const double* phi, double* y, std::int64_t count) {
  forecast_of(stream, forecast, w, m, v, phi, y, count);
}

void average_squares(Stream& stream, const SquareAverage& rule, const float* x, float* average,
                     std::int64_t count) {
  if (const auto* there = kernels_of(stream))
    return there->average_squares(stream, rule, x, average, count);
  average_of(stream, rule, x, average, count);
}
void average_squares(Stream& stream, const SquareAverage& rule, const double* x, double* average,
                     std::int64_t count) {
  average_of(stream, rule, x, average, count);
}

void usual_step(Stream& stream, const UsualStep& rule, const float* x, float* y,
                std::int64_t count) {
  if (const auto* there = kernels_of(stream)) return there->usual_step(stream, rule, x, y, count);
  usual_of(stream, rule, x, y, count);
}
void usual_step(Stream& stream, const UsualStep& rule, const double* x, double* y,
                std::int64_t count) {
  usual_of(stream, rule, x, y, count);
}

void gap_share(Stream& stream, const UsualStep& rule, const GapBetween<float>& gap, float* share,
               float* gradient, std::int64_t count) {
  if (const auto* there = kernels_of(stream))
    return there->gap_share(stream, rule, gap, share, gradient, count);
  share_of(stream, rule, gap, share, gradient, count);
}
void gap_share(Stream& stream, const UsualStep& rule, const GapBetween<double>& gap, double* share,
               double* gradient, std::int64_t count) {
  share_of(stream, rule, gap, share, gradient, count);
}

void compensate_delay(Stream& stream, double strength, const float* now, const float* then,
                      float* g, std::int64_t count) {
  if (const auto* there = kernels_of(stream))
    return there->compensate_delay(stream, strength, now, then, g, count);
  compensate(stream, strength, now, then, g, count);
}
void compensate_delay(Stream& stream, double strength, const double* now, const double* then,
                      double* g, std::int64_t count) {
  compensate(stream, strength, now, then, g, count);
}

void inverses_of_blocks(Stream& stream, const float* x, std::int64_t count, Inverses* blocks) {
  if (const auto* there = kernels_of(stream))
    return there->inverses_of_blocks(stream, x, count, blocks);
  invert_blocks(stream, x, count, blocks);
}
void inverses_of_blocks(Stream& stream, const double* x, std::int64_t count, Inverses* blocks) {
  invert_blocks(stream, x, count, blocks);
}

}  // namespace troupe::kernels
