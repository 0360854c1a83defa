#include "kernels/activations.h"
#include "kernels/cuda/gelu.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tile.cuh"

namespace troupe::kernels::cuda {
namespace {

template <Gelu form>
struct GeluForward {
  const float* x;
  float* y;
  __device__ void operator()(std::int64_t i) const { y[i] = GeluOf<form>::value(x[i]); }
};

template <Gelu form>
struct GeluBackward {
  const float *x, *dy;
  float* dx;
  __device__ void operator()(std::int64_t i) const { dx[i] = dy[i] * GeluOf<form>::slope(x[i]); }
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

void gelu_forward(Stream& stream, Gelu form, const float* x, float* y, std::int64_t count) {
  switch (form) {
    case Gelu::erf:
      return for_elements(stream, count, GeluForward<Gelu::erf>{x, y});
    case Gelu::tanh:
      return for_elements(stream, count, GeluForward<Gelu::tanh>{x, y});
  }
}
void gelu_backward(Stream& stream, Gelu form, const float* x, const float* dy, float* dx,
                   std::int64_t count) {
  switch (form) {
    case Gelu::erf:
      return for_elements(stream, count, GeluBackward<Gelu::erf>{x, dy, dx});
    case Gelu::tanh:
      return for_elements(stream, count, GeluBackward<Gelu::tanh>{x, dy, dx});
  }
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
