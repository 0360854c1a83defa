#include "kernels/cuda/cudnn/operation_graph.h"

#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe::kernels::cudnn {
namespace {

constexpr std::int64_t alignment = 16;  // In bytes: the widest load.

cudnnDataType_t data_type(Element element) {
  switch (element) {
    case Element::f32:
      return CUDNN_DATA_FLOAT;
    case Element::f16:
      return CUDNN_DATA_HALF;
    case Element::bf16:
      return CUDNN_DATA_BFLOAT16;
    case Element::i32:
      return CUDNN_DATA_INT32;
    case Element::boolean:
      return CUDNN_DATA_BOOLEAN;
  }
  return CUDNN_DATA_FLOAT;
}

std::span<const std::int64_t> numbers_of(const Shape& shape) {
  return {shape.begin(), shape.end()};
}

Descriptor tensor(const Operand& operand, std::int64_t number) {
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, number);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, data_type(operand.element));
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, numbers_of(operand.layout.sizes));
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, numbers_of(operand.layout.strides));
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, operand.home == Home::flight);
  tensor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, operand.home == Home::launch);
  tensor.finalize();
  return tensor;
}

Descriptor product_settings() {
  Descriptor settings(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  settings.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  settings.finalize();
  return settings;
}

Descriptor elementwise_settings(cudnnPointwiseMode_t mode,
                                cudnnDataType_t precision = CUDNN_DATA_FLOAT) {
  Descriptor settings(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  settings.set(CUDNN_ATTR_POINTWISE_MODE, mode);
  settings.set(CUDNN_ATTR_POINTWISE_MATH_PREC, precision);
  return settings;
}

Descriptor finalized(Descriptor settings) {
  settings.finalize();
  return settings;
}

Descriptor index_settings(std::int64_t axis) {
  auto settings = elementwise_settings(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32);
  settings.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
  return finalized(std::move(settings));
}

Descriptor reduction_settings(cudnnReduceTensorOp_t by) {
  Descriptor settings(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  settings.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  settings.set(CUDNN_ATTR_REDUCTION_OPERATOR, by);
  settings.finalize();
  return settings;
}

Descriptor sweep_settings(const Sweep& sweep) {
  const std::array<std::int64_t, 2> strides{sweep.stride, sweep.stride};
  const std::array<std::int64_t, 2> paddings{sweep.padding, sweep.padding};
  const std::array<std::int64_t, 2> dilations{1, 1};
  Descriptor settings(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  settings.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  settings.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  settings.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2});
  settings.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::span<const std::int64_t>(strides));
  settings.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::span<const std::int64_t>(paddings));
  settings.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::span<const std::int64_t>(paddings));
  settings.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::span<const std::int64_t>(dilations));
  settings.finalize();
  return settings;
}

/// Returns the settings of an operation, or nothing if it has none.
std::optional<Descriptor> settings_of(const Operation& operation) {
  switch (operation.kind) {
    case Kind::matmul:
      return product_settings();
    case Kind::multiply:
      return finalized(elementwise_settings(CUDNN_POINTWISE_MUL));
    case Kind::add:
      return finalized(elementwise_settings(CUDNN_POINTWISE_ADD));
    case Kind::subtract:
      return finalized(elementwise_settings(CUDNN_POINTWISE_SUB));
    case Kind::divide:
      return finalized(elementwise_settings(CUDNN_POINTWISE_DIV));
    case Kind::exp:
      return finalized(elementwise_settings(CUDNN_POINTWISE_EXP));
    case Kind::log:
      return finalized(elementwise_settings(CUDNN_POINTWISE_LOG));
    case Kind::copy:
      return finalized(elementwise_settings(CUDNN_POINTWISE_IDENTITY));
    case Kind::index:
      return index_settings(operation.axis);
    case Kind::at_least:
      return finalized(elementwise_settings(CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN));
    case Kind::select:
      return finalized(elementwise_settings(CUDNN_POINTWISE_BINARY_SELECT));
    case Kind::maximum:
      return reduction_settings(CUDNN_REDUCE_TENSOR_MAX);
    case Kind::sum:
      return reduction_settings(CUDNN_REDUCE_TENSOR_ADD);
    case Kind::reorder:
      return std::nullopt;
    case Kind::convolution:
    case Kind::convolution_backward_input:
    case Kind::convolution_backward_weight:
      return sweep_settings(operation.sweep);
  }
  return std::nullopt;
}

using Name = cudnnBackendAttributeName_t;

/// The attributes of a descriptor for the settings, the inputs in turn, and the output.
struct Form {
  cudnnBackendDescriptorType_t type;
  Name settings = {};
  std::array<Name, 3> inputs;
  Name output;
  std::optional<Name> alpha = {}, beta = {};  // output = alpha * result + beta * output
};

Form form_of(Kind kind) {
  switch (kind) {
    case Kind::matmul:
      return {.type = CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
              .settings = CUDNN_ATTR_OPERATION_MATMUL_DESC,
              .inputs = {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC},
              .output = CUDNN_ATTR_OPERATION_MATMUL_CDESC};
    case Kind::multiply:
    case Kind::add:
    case Kind::subtract:
    case Kind::divide:
    case Kind::exp:
    case Kind::log:
    case Kind::copy:
    case Kind::index:
    case Kind::at_least:
    case Kind::select:
      return {.type = CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
              .settings = CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
              .inputs = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                         CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
              .output = CUDNN_ATTR_OPERATION_POINTWISE_YDESC};
    case Kind::maximum:
    case Kind::sum:
      return {.type = CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
              .settings = CUDNN_ATTR_OPERATION_REDUCTION_DESC,
              .inputs = {CUDNN_ATTR_OPERATION_REDUCTION_XDESC},
              .output = CUDNN_ATTR_OPERATION_REDUCTION_YDESC};
    case Kind::reorder:
      return {.type = CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
              .inputs = {CUDNN_ATTR_OPERATION_RESHAPE_XDESC},
              .output = CUDNN_ATTR_OPERATION_RESHAPE_YDESC};
    case Kind::convolution:
      return {.type = CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              .settings = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              .inputs = {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W},
              .output = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              .alpha = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              .beta = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case Kind::convolution_backward_input:
      return {.type = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              .settings = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              .inputs = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
              .output = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              .alpha = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              .beta = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Kind::convolution_backward_weight:
      return {.type = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              .settings = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              .inputs = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
              .output = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              .alpha = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              .beta = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
  return {};
}

/// Calls use() for each element. Adds the element's number to exceptions.
template <class T, class Use>
void each_of(const std::string& what, const std::vector<T>& all, Use use) {
  std::size_t number = 0;
  const auto place = [&] {
    return what + " " + std::to_string(number) + " of " + std::to_string(all.size()) + ": ";
  };
  for (const auto& one : all) try {
      ++number;
      use(one);
    } catch (const NotSupported& refusal) {
      throw NotSupported(place() + refusal.what());
    } catch (const std::exception& refusal) {
      throw std::runtime_error(place() + refusal.what());
    }
}

}  // namespace

OperationGraph::OperationGraph(const Graph& graph, const Gpu& gpu)
    : graph_(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
  each_of("tensor", graph.operands(), [this](const Operand& operand) {
    const Term term{.number = static_cast<int>(operands_.size())};
    operands_.push_back(tensor(operand, number_of(term)));
  });
  each_of("operation", graph.operations(), [this](const Operation& operation) { add(operation); });
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
  gpu.tell_graph(graph_);
  graph_.finalize();
}

void OperationGraph::add(const Operation& operation) {
  const Form form = form_of(operation.kind);
  Descriptor made(form.type);
  if (auto settings = settings_of(operation)) {
    settings_.push_back(std::move(*settings));
    made.set(form.settings, settings_.back());
  }
  for (std::size_t i = 0; i < operation.inputs.size(); ++i)
    made.set(form.inputs.at(i), of(operation.inputs[i]));
  made.set(form.output, of(operation.output));
  if (form.alpha) made.set(*form.alpha, 1.0f);
  if (form.beta) made.set(*form.beta, 0.0f);
  made.finalize();
  operations_.push_back(std::move(made));
}

const Descriptor& OperationGraph::of(Term term) const {
  return operands_.at(static_cast<std::size_t>(term.number));
}

}  // namespace troupe::kernels::cudnn
