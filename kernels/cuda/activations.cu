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
  template <int n>
  __device__ void at(std::int64_t i) const {
    Pack<float, n> all = read_pack<n>(x, i);
    for (int k = 0; k < n; ++k) all[k] = GeluOf<form>::value(all[k]);
    write_pack(y, i, all);
  }
};

template <Gelu form>
struct GeluBackward {
  const float *x, *dy;
  float* dx;
  template <int n>
  __device__ void at(std::int64_t i) const {
    const auto inputs = read_pack<n>(x, i);
    auto all = read_pack<n>(dy, i);
    for (int k = 0; k < n; ++k) all[k] *= GeluOf<form>::slope(inputs[k]);
    write_pack(dx, i, all);
  }
};

struct SoftCapForward {
  float cap, share;
  const float* x;
  float* y;
  template <int n>
  __device__ void at(std::int64_t i) const {
    Pack<float, n> all = read_pack<n>(x, i);
    for (int k = 0; k < n; ++k) all[k] = cap * tanh_of(all[k] * share);
    write_pack(y, i, all);
  }
};

struct SoftCapBackward {
  float share;
  const float *y, *dy;
  float* dx;
  template <int n>
  __device__ void at(std::int64_t i) const {
    const auto outputs = read_pack<n>(y, i);
    auto all = read_pack<n>(dy, i);
    for (int k = 0; k < n; ++k) {
      const float t = outputs[k] * share;
      all[k] *= fmaf(-t, t, 1.0f);
    }
    write_pack(dx, i, all);
  }
};

template <class Number>
struct ReluForward {
  const Number* x;
  Number* y;
  template <int n>
  __device__ void at(std::int64_t i) const {
    auto all = read_pack<n>(x, i);
    for (int k = 0; k < n; ++k) all[k] = narrow<Number>(at_least(wide(all[k]), 0.0f));
    write_pack(y, i, all);
  }
};

template <class Number>
struct ReluBackward {
  const Number *y, *dy;
  Number* dx;
  template <int n>
  __device__ void at(std::int64_t i) const {
    const auto outputs = read_pack<n>(y, i);
    auto all = read_pack<n>(dy, i);
    for (int k = 0; k < n; ++k)
      if (!(wide(outputs[k]) > 0.0f)) all[k] = narrow<Number>(0.0f);
    write_pack(dx, i, all);
  }
};

template <class Number>
struct SwigluForward {
  const Number *gate, *up;
  Number* y;
  template <int n>
  __device__ void at(std::int64_t i) const {
    const auto gates = read_pack<n>(gate, i), ups = read_pack<n>(up, i);
    Pack<float, n> all;
    for (int k = 0; k < n; ++k) {
      const float g = wide(gates[k]);
      all[k] = g / (1.0f + exp_of(-g)) * wide(ups[k]);
    }
    write_pack(y, i, narrow_computed<Number>(all));
  }
};

template <class Number>
struct SwigluBackward {
  const Number *gate, *up, *dy;
  Number *dgate, *dup;
  template <int n>
  __device__ void at(std::int64_t i) const {
    const auto gates = read_pack<n>(gate, i), ups = read_pack<n>(up, i);
    const auto gradients = read_pack<n>(dy, i);
    Pack<float, n> to_gate, to_up;
    for (int k = 0; k < n; ++k) {
      const float g = wide(gates[k]), u = wide(ups[k]), gradient = wide(gradients[k]);
      const float s = sigmoid(g);
      to_gate[k] = gradient * u * (s * fmaf(g, 1.0f - s, 1.0f));
      to_up[k] = gradient * (g * s);
    }
    write_pack(dgate, i, narrow_computed<Number>(to_gate));
    write_pack(dup, i, narrow_computed<Number>(to_up));
  }
};

template <class Number>
struct Sum {
  const Number* first;
  const float* second;
  float* y;
  template <int n>
  __device__ void at(std::int64_t i) const {
    const auto firsts = read_pack<n>(first, i);
    auto all = read_pack<n>(second, i);
    for (int k = 0; k < n; ++k) all[k] = wide(firsts[k]) + all[k];
    write_pack(y, i, all);
  }
};

/// Packs must not go over the end of a row.
struct SumWithRow {
  const float *x, *row;
  float* y;
  std::int64_t columns;
  template <int n>
  __device__ void at(std::int64_t i) const {
    const auto of_row = read_pack<n>(row, i % columns);
    auto all = read_pack<n>(x, i);
    for (int k = 0; k < n; ++k) all[k] += of_row[k];
    write_pack(y, i, all);
  }
};

}  // namespace

void softcap_forward(Stream& stream, float cap, const float* x, float* y, std::int64_t count) {
  for_packs<in_access<float>>(stream, count, are_aligned(x, y), SoftCapForward{cap, 1 / cap, x, y});
}
void softcap_backward(Stream& stream, float cap, const float* y, const float* dy, float* dx,
                      std::int64_t count) {
  for_packs<in_access<float>>(stream, count, are_aligned(y, dy, dx),
                              SoftCapBackward{1 / cap, y, dy, dx});
}
void gelu_forward(Stream& stream, Gelu form, const float* x, float* y, std::int64_t count) {
  switch (form) {
    case Gelu::erf:
      return for_packs<in_access<float>>(stream, count, are_aligned(x, y),
                                         GeluForward<Gelu::erf>{x, y});
    case Gelu::tanh:
      return for_packs<in_access<float>>(stream, count, are_aligned(x, y),
                                         GeluForward<Gelu::tanh>{x, y});
  }
}
void gelu_backward(Stream& stream, Gelu form, const float* x, const float* dy, float* dx,
                   std::int64_t count) {
  switch (form) {
    case Gelu::erf:
      return for_packs<in_access<float>>(stream, count, are_aligned(x, dy, dx),
                                         GeluBackward<Gelu::erf>{x, dy, dx});
    case Gelu::tanh:
      return for_packs<in_access<float>>(stream, count, are_aligned(x, dy, dx),
                                         GeluBackward<Gelu::tanh>{x, dy, dx});
  }
}
void add_row(Stream& stream, const float* x, const float* row, float* y, std::int64_t rows,
             std::int64_t columns) {
  constexpr int n = in_access<float>;
  for_packs<n>(stream, rows * columns, columns % n == 0 && are_aligned(x, row, y),
               SumWithRow{x, row, y, columns});
}

template <class Number>
void Activations<Number>::add(Stream& stream, const Number* a, const float* b, float* y,
                              std::int64_t count) {
  for_packs<in_access<Number>>(stream, count, are_aligned(a, b, y), Sum<Number>{a, b, y});
}
template <class Number>
void Activations<Number>::relu_forward(Stream& stream, const Number* x, Number* y,
                                       std::int64_t count) {
  for_packs<in_access<Number>>(stream, count, are_aligned(x, y), ReluForward<Number>{x, y});
}
template <class Number>
void Activations<Number>::relu_backward(Stream& stream, const Number* y, const Number* dy,
                                        Number* dx, std::int64_t count) {
  for_packs<in_access<Number>>(stream, count, are_aligned(y, dy, dx),
                               ReluBackward<Number>{y, dy, dx});
}
template <class Number>
void Activations<Number>::swiglu_forward(Stream& stream, const Number* gate, const Number* up,
                                         Number* y, std::int64_t count) {
  for_packs<in_access<Number>>(stream, count, are_aligned(gate, up, y),
                               SwigluForward<Number>{gate, up, y});
}
template <class Number>
void Activations<Number>::swiglu_backward(Stream& stream, const Number* gate, const Number* up,
                                          const Number* dy, Number* dgate, Number* dup,
                                          std::int64_t count) {
  for_packs<in_access<Number>>(stream, count, are_aligned(gate, up, dy, dgate, dup),
                               SwigluBackward<Number>{gate, up, dy, dgate, dup});
}

template struct Activations<float>;
template struct Activations<Float16>;
template struct Activations<BFloat16>;

}  // namespace troupe::kernels::cuda
