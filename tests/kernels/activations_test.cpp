#include "kernels/activations.h"

#include <limits>

#include "tests/kernels/differences.h"

namespace troupe::kernels {
namespace {

struct Activation {
  const char* name;
  void (*forward)(Stream&, const float*, float*, std::int64_t);
  void (*backward)(Stream&, const float*, const float*, float*, std::int64_t);
  double (*reference)(double);
};

double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}
double gelu_erf(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double relu(double x) { return x > 0 ? x : 0; }
double silu(double x) { return x / (1 + std::exp(-x)); }

template <Gelu form>
void forward(Stream& stream, const float* x, float* y, std::int64_t count) {
  gelu_forward(stream, form, x, y, count);
}
template <Gelu form>
void backward(Stream& stream, const float* x, const float* dy, float* dx, std::int64_t count) {
  gelu_backward(stream, form, x, dy, dx, count);
}

// The backward pass of relu uses the output, which is positive exactly if the input is.
const Activation activations[] = {
    {"gelu with tanh", forward<Gelu::tanh>, backward<Gelu::tanh>, gelu_tanh},
    {"gelu with erf", forward<Gelu::erf>, backward<Gelu::erf>, gelu_erf},
    {"relu", relu_forward, relu_backward, relu},
};

const std::int64_t sizes[] = {1, 2, 15, 16, 17, 61, 257};

Floats values(const std::function<void(float*)>& kernel, std::int64_t count) {
  Floats y(static_cast<std::size_t>(count));
  kernel(y.data());
  return y;
}

Doubles mapped(double (*f)(double), Doubles x) {
  for (auto& number : x) number = f(number);
  return x;
}

TEST_CASE("activations and their gradients agree with their formulas", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  for (const auto& activation : activations)
    for (const auto n : sizes) {
      INFO(activation.name << " of " << n);
      const auto x = numbers_up_to(7, n, 1), dy = numbers(n, 2);
      const auto f = [&](const Doubles& input) { return mapped(activation.reference, input); };
      CHECK(close(values([&](float* y) { activation.forward(stream, x.data(), y, n); }, n),
                  f(doubles(x)), 1));
      CHECK(close(
          values([&](float* dx) { activation.backward(stream, x.data(), dy.data(), dx, n); }, n),
          numerical_gradient(f, x, dy), 1));
    }
}

TEST_CASE("activations give the same results in place", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const std::int64_t n = 77;
  for (const auto& activation : activations) {
    INFO(activation.name);
    const auto x = numbers_up_to(3, n, 1), dy = numbers(n, 2);
    auto in_place = x;
    activation.forward(stream, in_place.data(), in_place.data(), n);
    CHECK(in_place == values([&](float* y) { activation.forward(stream, x.data(), y, n); }, n));
    in_place = dy;
    activation.backward(stream, x.data(), in_place.data(), in_place.data(), n);
    CHECK(in_place ==
          values([&](float* dx) { activation.backward(stream, x.data(), dy.data(), dx, n); }, n));
  }
}

TEST_CASE("activations equal relu far from 0 and return NaN for NaN", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float x[] = {1e30f, -1e30f, 0, nan}, ones[] = {1, 1, 1, 1};
  float y[4], dx[4];
  for (const auto& activation : activations) {
    INFO(activation.name);
    activation.forward(stream, x, y, 4);
    CHECK(y[0] == 1e30f);
    CHECK(y[1] == 0);
    CHECK(y[2] == 0);
    CHECK(std::isnan(y[3]));
    activation.backward(stream, x, ones, dx, 3);
    CHECK(dx[0] == 1);
    CHECK(std::abs(dx[1]) < 1e-30f);
  }
  for (const Gelu form : {Gelu::erf, Gelu::tanh}) {
    gelu_backward(stream, form, x, ones, dx, 4);
    CHECK(std::isnan(dx[3]));
  }
}

TEST_CASE("swiglu and its gradients agree with their formula", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  for (const auto n : sizes) {
    INFO(n);
    const auto gate = numbers_up_to(9, n, 1), up = numbers_up_to(2, n, 2), dy = numbers(n, 3);
    const auto f = [&](const Doubles& g, const Doubles& u) {
      Doubles y;
      for (std::size_t i = 0; i < g.size(); ++i) y.push_back(silu(g[i]) * u[i]);
      return y;
    };
    Floats y(up.size()), dgate = gate, dup = up;
    swiglu_forward(stream, gate.data(), up.data(), y.data(), n);
    CHECK(close(y, f(doubles(gate), doubles(up)), 1));

    swiglu_backward(stream, dgate.data(), dup.data(), dy.data(), dgate.data(), dup.data(), n);
    CHECK(close(dgate,
                numerical_gradient([&](const Doubles& g) { return f(g, doubles(up)); }, gate, dy),
                1));
    CHECK(close(
        dup, numerical_gradient([&](const Doubles& u) { return f(doubles(gate), u); }, up, dy), 1));
  }
}

TEST_CASE("add sums two tensors and add_row adds one row to each row", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const Floats a{1, 2, 3, 4, 5, 6}, b{10, 20, 30, 40, 50, 60}, row{100, 200, 300};
  Floats y(6);
  add(stream, a.data(), b.data(), y.data(), 6);
  CHECK(y == Floats{11, 22, 33, 44, 55, 66});
  add(stream, y.data(), b.data(), y.data(), 6);
  CHECK(y == Floats{21, 42, 63, 84, 105, 126});
  add_row(stream, a.data(), row.data(), y.data(), 2, 3);
  CHECK(y == Floats{101, 202, 303, 104, 205, 306});
}

TEST_CASE("activations have the same bits with any number of threads and any instruction set",
          "[kernels]") {
  const std::int64_t n = 40'001;
  const auto x = numbers_up_to(5, n, 1), dy = numbers(n, 2);
  for (const auto& activation : activations) {
    INFO(activation.name);
    CHECK(same_bits([&](Stream& stream) {
      return values([&](float* y) { activation.forward(stream, x.data(), y, n); }, n);
    }));
    CHECK(same_bits([&](Stream& stream) {
      return values([&](float* dx) { activation.backward(stream, x.data(), dy.data(), dx, n); }, n);
    }));
  }
  CHECK(same_bits([&](Stream& stream) {
    Floats gate = x, up = dy;
    swiglu_backward(stream, gate.data(), up.data(), x.data(), gate.data(), up.data(), n);
    swiglu_forward(stream, gate.data(), up.data(), up.data(), n);
    return up;
  }));
  CHECK(same_bits([&](Stream& stream) {
    return values([&](float* y) { add_row(stream, x.data(), dy.data(), y, 13, 3077); }, n);
  }));
}

}  // namespace
}  // namespace troupe::kernels
