#include "kernels/activations.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/tile.cuh"

namespace troupe::kernels::cuda {
namespace {

// Named as in kernels/cpu/activations.cpp, which says why it is computed like this.
constexpr float a = 1.5957691216f;
constexpr float b = 0.07135481628f;

__device__ float sigmoid(float x) { return 1.0f / (1.0f + exp_of(-x)); }
__device__ float normal_distribution(float x) { return fmaf(0.5f, erf_of(x * 0.70710678f), 0.5f); }

struct GeluTanhForward {
  const float* x;
  float* y;
  __device__ void operator()(std::int64_t i) const {
    const float input = x[i];
    y[i] = input / (1.0f + exp_of(input * polynomial(input * input, -a, -b)));
  }
};

struct GeluTanhBackward {
  const float *x, *dy;
  float* dx;
  __device__ void operator()(std::int64_t i) const {
    const float input = at_least(at_most(x[i], 10.0f), -10.0f);
    const float square = input * input;
    const float s = sigmoid(input * polynomial(square, a, b));
    const float inner = input * polynomial(square, a, 3 * b);
    dx[i] = dy[i] * fmaf(s * (1.0f - s), inner, s);
  }
};

struct GeluErfForward {
  const float* x;
  float* y;
  __device__ void operator()(std::int64_t i) const { y[i] = x[i] * normal_distribution(x[i]); }
};

struct GeluErfBackward {
  const float *x, *dy;
  float* dx;
  __device__ void operator()(std::int64_t i) const {
    const float input = x[i];
    const float density = 0.39894228f * exp_of(input * input * -0.5f);
    dx[i] = dy[i] * fmaf(input, density, normal_distribution(input));
  }
};

struct ReluForward {
  const float* x;
  float* y;
  __device__ void operator()(std::int64_t i) const { y[i] = at_least(x[i], 0.0f); }
};

struct ReluBackward {
  const float *y, *dy;
  float* dx;
  __device__ void operator()(std::int64_t i) const { dx[i] = y[i] > 0.0f ? dy[i] : 0.0f; }
};

struct SwigluForward {
  const float *gate, *up;
  float* y;
  __device__ void operator()(std::int64_t i) const {
    const float g = gate[i];
    y[i] = g / (1.0f + exp_of(-g)) * up[i];
  }
};

struct SwigluBackward {
  const float *gate, *up, *dy;
  float *dgate, *dup;
  __device__ void operator()(std::int64_t i) const {
    const float g = gate[i], u = up[i], gradient = dy[i];
    const float s = sigmoid(g);
    dgate[i] = gradient * u * (s * fmaf(g, 1.0f - s, 1.0f));
    dup[i] = gradient * (g * s);
  }
};

struct Sum {
  const float *first, *second;
  float* y;
  __device__ void operator()(std::int64_t i) const { y[i] = first[i] + second[i]; }
};

struct SumWithRow {
  const float *x, *row;
  float* y;
  std::int64_t columns;
  __device__ void operator()(std::int64_t i) const { y[i] = x[i] + row[i % columns]; }
};

}  // namespace

void gelu_tanh_forward(Stream& stream, const float* x, float* y, std::int64_t count) {
  for_elements(stream, count, GeluTanhForward{x, y});
}
void gelu_tanh_backward(Stream& stream, const float* x, const float* dy, float* dx,
                        std::int64_t count) {
  for_elements(stream, count, GeluTanhBackward{x, dy, dx});
}
void gelu_erf_forward(Stream& stream, const float* x, float* y, std::int64_t count) {
  for_elements(stream, count, GeluErfForward{x, y});
}
void gelu_erf_backward(Stream& stream, const float* x, const float* dy, float* dx,
                       std::int64_t count) {
  for_elements(stream, count, GeluErfBackward{x, dy, dx});
}
void relu_forward(Stream& stream, const float* x, float* y, std::int64_t count) {
  for_elements(stream, count, ReluForward{x, y});
}
void relu_backward(Stream& stream, const float* y, const float* dy, float* dx, std::int64_t count) {
  for_elements(stream, count, ReluBackward{y, dy, dx});
}
void swiglu_forward(Stream& stream, const float* gate, const float* up, float* y,
                    std::int64_t count) {
  for_elements(stream, count, SwigluForward{gate, up, y});
}
void swiglu_backward(Stream& stream, const float* gate, const float* up, const float* dy,
                     float* dgate, float* dup, std::int64_t count) {
  for_elements(stream, count, SwigluBackward{gate, up, dy, dgate, dup});
}
void add(Stream& stream, const float* a, const float* b, float* y, std::int64_t count) {
  for_elements(stream, count, Sum{a, b, y});
}
void add_row(Stream& stream, const float* x, const float* row, float* y, std::int64_t rows,
             std::int64_t columns) {
  for_elements(stream, rows * columns, SumWithRow{x, row, y, columns});
}

}  // namespace troupe::kernels::cuda
