#include <cmath>
#include <vector>

#include "kernels/attention.h"
#include "kernels/conv2d.h"
#include "kernels/rope.h"
namespace troupe::kernels {
void attention_forward(Stream& stream, const AttentionShape& s, HeadsIn q, HeadsIn k, HeadsIn v,
                       HeadsOut out, float* lse) {
  stream.for_each(s.batch * s.heads, [&](std::int64_t bh) {
    auto b = bh / s.heads, h = bh % s.heads, g = h * s.kv_heads / s.heads;
    float scale = 1 / std::sqrt(float(s.width));
    std::vector<float> p(s.length);
    for (std::int64_t i = 0; i < s.length; ++i) {
      auto n = s.mask == Mask::causal ? i + 1 : s.length;
      float top = -1e30f;
      const float* qi = q.data + (b * s.length + i) * q.row + h * s.width;
      for (std::int64_t j = 0; j < n; ++j) {
        const float* kj = k.data + (b * s.length + j) * k.row + g * s.width;
        float d = 0;
        for (std::int64_t c = 0; c < s.width; ++c) d += qi[c] * kj[c];
        p[j] = d * scale;
        top = std::max(top, p[j]);
      }
      float sum = 0;
      for (std::int64_t j = 0; j < n; ++j) sum += p[j] = std::exp(p[j] - top);
      lse[bh * s.length + i] = top + std::log(sum);
      float* o = out.data + (b * s.length + i) * out.row + h * s.width;
      for (std::int64_t c = 0; c < s.width; ++c) o[c] = 0;
      for (std::int64_t j = 0; j < n; ++j) {
        const float* vj = v.data + (b * s.length + j) * v.row + g * s.width;
        for (std::int64_t c = 0; c < s.width; ++c) o[c] += p[j] / sum * vj[c];
      }
    }
  });
}
void attention_backward(Stream& stream, const AttentionShape& s, HeadsIn q, HeadsIn k, HeadsIn v,
                        HeadsIn out, const float* lse, HeadsIn dout, HeadsOut dq, HeadsOut dk,
                        HeadsOut dv) {
  stream.for_each(s.batch * s.kv_heads, [&](std::int64_t bg) {
    auto b = bg / s.kv_heads, g = bg % s.kv_heads;
    float scale = 1 / std::sqrt(float(s.width));
    for (std::int64_t j = 0; j < s.length; ++j)
      for (std::int64_t c = 0; c < s.width; ++c)
        dk.data[(b * s.length + j) * dk.row + g * s.width + c] =
            dv.data[(b * s.length + j) * dv.row + g * s.width + c] = 0;
    for (std::int64_t h = 0; h < s.heads; ++h) {
      if (h * s.kv_heads / s.heads != g) continue;
      for (std::int64_t i = 0; i < s.length; ++i) {
        auto n = s.mask == Mask::causal ? i + 1 : s.length;
        auto row = b * s.length + i;
        const float* qi = q.data + row * q.row + h * s.width;
        const float* oi = out.data + row * out.row + h * s.width;
        const float* di = dout.data + row * dout.row + h * s.width;
        float* dqi = dq.data + row * dq.row + h * s.width;
        float D = 0;
        for (std::int64_t c = 0; c < s.width; ++c) {
          D += oi[c] * di[c];
          dqi[c] = 0;
        }
        for (std::int64_t j = 0; j < n; ++j) {
          auto rj = b * s.length + j;
          const float* kj = k.data + rj * k.row + g * s.width;
          const float* vj = v.data + rj * v.row + g * s.width;
          float d = 0, dp = 0;
          for (std::int64_t c = 0; c < s.width; ++c) {
            d += qi[c] * kj[c];
            dp += di[c] * vj[c];
          }
          float p = std::exp(d * scale - lse[(b * s.heads + h) * s.length + i]);
          float ds = p * (dp - D) * scale;
          for (std::int64_t c = 0; c < s.width; ++c) {
            dqi[c] += ds * kj[c];
            dk.data[rj * dk.row + g * s.width + c] += ds * qi[c];
            dv.data[rj * dv.row + g * s.width + c] += p * di[c];
          }
        }
      }
    }
  });
}
void rope(Stream&, Rotation r, HeadsOut x, std::int64_t batch, std::int64_t length,
          std::int64_t heads, std::int64_t width, double theta) {
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t p = 0; p < length; ++p)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t i = 0; i < width / 2; ++i) {
          double a = p * std::pow(theta, -2.0 * i / width);
          if (r == Rotation::back) a = -a;
          float* y = x.data + (b * length + p) * x.row + h * width;
          float u = y[i], w = y[i + width / 2];
          y[i] = float(u * std::cos(a) - w * std::sin(a));
          y[i + width / 2] = float(w * std::cos(a) + u * std::sin(a));
        }
}
template <class F>
void conv(const Conv2dShape& s, F f) {
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t o = 0; o < s.out_channels; ++o)
      for (std::int64_t y = 0; y < s.out_height(); ++y)
        for (std::int64_t x = 0; x < s.out_width(); ++x)
          for (std::int64_t i = 0; i < s.in_channels; ++i)
            for (std::int64_t r = 0; r < s.kernel; ++r)
              for (std::int64_t c = 0; c < s.kernel; ++c) {
                auto yy = y * s.stride + r - s.padding, xx = x * s.stride + c - s.padding;
                if (yy < 0 || xx < 0 || yy >= s.height || xx >= s.width) continue;
                f(((b * s.in_channels + i) * s.height + yy) * s.width + xx,
                  ((o * s.in_channels + i) * s.kernel + r) * s.kernel + c,
                  ((b * s.out_channels + o) * s.out_height() + y) * s.out_width() + x);
              }
}
void conv2d_forward(Stream&, const Conv2dShape& s, const float* x, const float* w, float* y) {
  std::fill_n(y, s.batch * s.out_channels * s.out_height() * s.out_width(), 0.f);
  conv(s, [&](auto i, auto j, auto o) { y[o] += x[i] * w[j]; });
}
void conv2d_backward_input(Stream&, const Conv2dShape& s, const float* w, const float* dy,
                           float* dx) {
  std::fill_n(dx, s.batch * s.in_channels * s.height * s.width, 0.f);
  conv(s, [&](auto i, auto j, auto o) { dx[i] += dy[o] * w[j]; });
}
void conv2d_backward_weight(Stream&, const Conv2dShape& s, const float* x, const float* dy,
                            float* dw) {
  conv(s, [&](auto i, auto j, auto o) { dw[j] += dy[o] * x[i]; });
}
}  // namespace troupe::kernels
