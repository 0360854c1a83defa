#include "kernels/activations.h"
#include "kernels/cuda/between_layers.h"
#include "kernels/cuda/gelu.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/numbers.cuh"
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

template <class Number>
struct ReluForward {
  const Number* x;
  Number* y;
  __device__ void operator()(std::int64_t i) const {
    y[i] = narrow<Number>(at_least(wide(x[i]), 0.0f));
  }
};

template <class Number>
struct ReluBackward {
  const Number *y, *dy;
  Number* dx;
  __device__ void operator()(std::int64_t i) const {
    dx[i] = wide(y[i]) > 0.0f ? dy[i] : narrow<Number>(0.0f);
  }
};

template <class Number>
struct SwigluForward {
  const Number *gate, *up;
  Number* y;
  __device__ void operator()(std::int64_t i) const {
    const float g = wide(gate[i]);
    y[i] = narrow<Number>(g / (1.0f + exp_of(-g)) * wide(up[i]));
  }
};

template <class Number>
struct SwigluBackward {
  const Number *gate, *up, *dy;
  Number *dgate, *dup;
  __device__ void operator()(std::int64_t i) const {
    const float g = wide(gate[i]), u = wide(up[i]), gradient = wide(dy[i]);
    const float s = sigmoid(g);
    dgate[i] = narrow<Number>(gradient * u * (s * fmaf(g, 1.0f - s, 1.0f)));
    dup[i] = narrow<Number>(gradient * (g * s));
  }
};

template <class Number>
struct Sum {
  const Number* first;
  const float* second;
  __device__ float operator()(std::int64_t i) const { return wide(first[i]) + second[i]; }
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
void add_row(Stream& stream, const float* x, const float* row, float* y, std::int64_t rows,
             std::int64_t columns) {
  for_elements(stream, rows * columns, SumWithRow{x, row, y, columns});
}

template <class Number>
void Activations<Number>::add(Stream& stream, const Number* a, const float* b, float* y,
                              std::int64_t count) {
  for_values(stream, count, y, Sum<Number>{a, b});
}
template <class Number>
void Activations<Number>::relu_forward(Stream& stream, const Number* x, Number* y,
                                       std::int64_t count) {
  for_elements(stream, count, ReluForward<Number>{x, y});
}
template <class Number>
void Activations<Number>::relu_backward(Stream& stream, const Number* y, const Number* dy,
                                        Number* dx, std::int64_t count) {
  for_elements(stream, count, ReluBackward<Number>{y, dy, dx});
}
template <class Number>
void Activations<Number>::swiglu_forward(Stream& stream, const Number* gate, const Number* up,
                                         Number* y, std::int64_t count) {
  for_elements(stream, count, SwigluForward<Number>{gate, up, y});
}
template <class Number>
void Activations<Number>::swiglu_backward(Stream& stream, const Number* gate, const Number* up,
                                          const Number* dy, Number* dgate, Number* dup,
                                          std::int64_t count) {
  for_elements(stream, count, SwigluBackward<Number>{gate, up, dy, dgate, dup});
}

template struct Activations<float>;
template struct Activations<Float16>;
template struct Activations<BFloat16>;

}  // namespace troupe::kernels::cuda
