#include "models/layers/networks/gates.h"

#include "kernels/activations.h"
#include "kernels/between_layers.h"
#include "kernels/combine.h"
#include "kernels/rounding.h"

namespace troupe::models {
namespace {

kernels::Gelu gelu_of(Gate form) {
  return form == Gate::gelu ? kernels::Gelu::erf : kernels::Gelu::tanh;
}

}  // namespace

Tensor gated(Stream& stream, Gate form, const Tensor& gate, const Tensor& up) {
  if (form == Gate::silu) {
    Tensor y = stream.make(gate.shape(), gate.dtype());
    kernels::swiglu(stream, gate, up, y);
    return y;
  }
  const Tensor of_gate = kernels::as_type(stream, gate, DType::f32),
               of_up = kernels::as_type(stream, up, DType::f32);
  Tensor y = stream.make(of_gate.shape());
  kernels::gelu_forward(stream, gelu_of(form), of_gate.f32(), y.f32(), y.count());
  kernels::multiply(stream, of_up.f32(), y.f32(), y.count());
  return y;
}

GateGradients gated_back(Stream& stream, Gate form, const Tensor& gate, const Tensor& up,
                         const Tensor& dy) {
  if (form == Gate::silu) {
    const DType type = gate.dtype();
    GateGradients made{stream.make(dy.shape(), type), stream.make(dy.shape(), type)};
    kernels::swiglu_back(stream, gate, up, kernels::as_type(stream, dy, type), made.gate, made.up);
    return made;
  }
  const Tensor gradient = kernels::as_type(stream, dy, DType::f32);
  const Tensor of_gate = kernels::as_type(stream, gate, DType::f32),
               of_up = kernels::as_type(stream, up, DType::f32);
  const auto count = gradient.count();
  GateGradients made;
  made.up = stream.make(gradient.shape());
  made.gate = stream.make(gradient.shape());
  kernels::gelu_forward(stream, gelu_of(form), of_gate.f32(), made.up.f32(), count);
  kernels::multiply(stream, gradient.f32(), made.up.f32(), count);
  kernels::gelu_backward(stream, gelu_of(form), of_gate.f32(), gradient.f32(), made.gate.f32(),
                         count);
  kernels::multiply(stream, of_up.f32(), made.gate.f32(), count);
  return made;
}

}  // namespace troupe::models
