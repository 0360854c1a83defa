#include "kernels/cuda/cublas_lt/matmul.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe::kernels::cublas_lt {
namespace {

using Element = Form::Element;
using Order = Form::Factor::Order;
using Start = Form::Start;
using Kind = EpilogueKind;

std::uint32_t alignment_of(const void* address) {
  // Pool memory is aligned to 64 bytes (core/memory/memory_pool.h). A larger alignment is chance,
  // and must not influence the algorithm and thereby the bits.
  constexpr std::uintptr_t most = 64;
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  return static_cast<std::uint32_t>(number == 0 ? most : std::min(most, number & (~number + 1)));
}

template <class Number>
constexpr Element element_of = Element::tf32;
template <>
constexpr Element element_of<Float16> = Element::f16;
template <>
constexpr Element element_of<BFloat16> = Element::bf16;

cudaDataType_t type_of(Element element) {
  switch (element) {
    case Element::tf32:
      return CUDA_R_32F;
    case Element::f16:
      return CUDA_R_16F;
    case Element::bf16:
      return CUDA_R_16BF;
  }
  return CUDA_R_32F;
}

std::string to_string(Element element) {
  switch (element) {
    case Element::tf32:
      return "tf32";
    case Element::f16:
      return "fp16";
    case Element::bf16:
      return "bf16";
  }
  return {};
}

/// Chooses an order that suits the strides; a single row or column fits either order.
template <class Number>
Form::Factor factor(const DeviceMatrix<Number>& matrix, std::int64_t columns) {
  const auto alignment = alignment_of(matrix.data);
  if (matrix.column_stride == 1 && matrix.row_stride >= columns)
    return {Order::by_row, matrix.row_stride, alignment};
  return {Order::by_column, matrix.column_stride, alignment};
}

/// Returns the library's layout of a `rows` x `columns` matrix: by row means transposed by column.
cublasLtMatrixLayout_t layout_of(Element element, const Form::Factor& factor, std::int64_t rows,
                                 std::int64_t columns) {
  if (factor.order == Order::by_row) std::swap(rows, columns);
  cublasLtMatrixLayout_t layout = nullptr;
  check(library()->create_layout(&layout, type_of(element), static_cast<std::uint64_t>(rows),
                                 static_cast<std::uint64_t>(columns), factor.stride));
  return layout;
}

cublasLtMatrixLayout_t result_layout(const Form& form, std::int64_t stride) {
  const auto type = takes_place_of_c(form.epilogue) ? type_of(form.element) : CUDA_R_32F;
  cublasLtMatrixLayout_t layout = nullptr;
  check(library()->create_layout(&layout, type, static_cast<std::uint64_t>(form.columns),
                                 static_cast<std::uint64_t>(form.rows), stride));
  return layout;
}

cublasLtMatmulDesc_t new_operation(Element element) {
  const auto sums = element == Element::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasLtMatmulDesc_t operation = nullptr;
  check(library()->create_operation(&operation, sums, CUDA_R_32F));
  return operation;
}

template <class Value>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t name, const Value& value) {
  check(library()->set_operation(operation, name, &value, sizeof value));
}
template <class Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t name,
         const Value& value) {
  check(library()->set_preference(preference, name, &value, sizeof value));
}

cublasLtEpilogue_t epilogue_of(const Form& form) {
  switch (form.epilogue) {
    case Kind::none:
    case Kind::rounded:
      return form.start == Start::one_row ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    case Kind::gelu:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case Kind::gelu_slope:
      return CUBLASLT_EPILOGUE_DGELU;
    case Kind::rows_of_a:  // Our a is the library's b.
      return CUBLASLT_EPILOGUE_BGRADB;
    case Kind::columns_of_b:
      return CUBLASLT_EPILOGUE_BGRADA;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

}  // namespace

std::string Library::name() const {
  const auto number = version();
  const auto part = [](std::size_t of) { return std::to_string(of); };
  return "cuBLASLt " + part(number / 10000) + "." + part(number / 100 % 100) + "." +
         part(number % 100);
}

void check(cublasStatus_t outcome) {
  if (outcome != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string("cuBLASLt: ") + library()->text_of(outcome));
}

std::string to_string(const Form& form) {
  return std::to_string(form.rows) + " x " + std::to_string(form.depth) + " by " +
         std::to_string(form.depth) + " x " + std::to_string(form.columns) + " in " +
         to_string(form.element);
}

template <class Number>
Form Form::of(const DeviceProduct<Number>& product, const Epilogue<Number>& epilogue) {
  const auto places = Places::of(product, epilogue);
  Form form{.element = element_of<Number>,
            .rows = product.rows,
            .columns = product.columns,
            .depth = product.depth,
            .a = factor(product.a, product.depth),
            .b = factor(product.b, product.columns),
            .c_stride = takes_place_of_c(epilogue.kind) ? product.columns : product.c_stride,
            .c_alignment = alignment_of(places.c),
            .epilogue = epilogue.kind};
  if (places.aux) form.aux_alignment = alignment_of(places.aux);
  if (places.bias) form.bias_alignment = alignment_of(places.bias);
  if (places.start) {
    form.start = Start::matrix;
    form.start_stride = product.start_stride;
    form.start_alignment = alignment_of(places.start);
  } else if (product.start || epilogue.bias) {
    form.start = Start::one_row;
  }
  return form;
}
template Form Form::of(const DeviceProduct<float>&, const Epilogue<float>&);
template Form Form::of(const DeviceProduct<Float16>&, const Epilogue<Float16>&);
template Form Form::of(const DeviceProduct<BFloat16>&, const Epilogue<BFloat16>&);

bool Form::is_possible() const {
  return !has_gelu(epilogue) || (columns % 8 == 0 && aux_alignment >= 16);
}

template <class Number>
Places Places::of(const DeviceProduct<Number>& product, const Epilogue<Number>& epilogue) {
  Places places{.a = product.a.data, .b = product.b.data, .c = product.c};
  if (takes_place_of_c(epilogue.kind)) {
    assert(!product.start);
    places.c = epilogue.result;
    places.aux = epilogue.pre;
    places.bias = epilogue.bias;
    return places;
  }
  const bool has_row = product.start && product.start_stride == 0;
  assert(!has_row || !epilogue.sums);
  places.start = has_row ? nullptr : product.start;
  places.bias = has_row ? product.start : epilogue.sums;
  return places;
}
template Places Places::of(const DeviceProduct<float>&, const Epilogue<float>&);
template Places Places::of(const DeviceProduct<Float16>&, const Epilogue<Float16>&);
template Places Places::of(const DeviceProduct<BFloat16>&, const Epilogue<BFloat16>&);

Matmul::Matmul(const Form& form)
    : form_(form),
      operation_(new_operation(form.element), library()->destroy_operation),
      a_(layout_of(form.element, form.b, form.depth, form.columns), library()->destroy_layout),
      b_(layout_of(form.element, form.a, form.rows, form.depth), library()->destroy_layout),
      start_(result_layout(form, form.start == Start::matrix ? form.start_stride : form.c_stride),
             library()->destroy_layout),
      c_(result_layout(form, form.c_stride), library()->destroy_layout) {
  // To the library a matrix by row is already transposed, as the product needs it.
  const auto turn = [](const Form::Factor& factor) {
    return factor.order == Order::by_row ? CUBLAS_OP_N : CUBLAS_OP_T;
  };
  set(operation_.get(), CUBLASLT_MATMUL_DESC_TRANSA, turn(form.b));
  set(operation_.get(), CUBLASLT_MATMUL_DESC_TRANSB, turn(form.a));
  set(operation_.get(), CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(form));
  if (has_gelu(form.epilogue))
    set(operation_.get(), CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, form.c_stride);
}

void Matmul::set_addresses(const Places& places) const {
  if (places.bias) set(operation_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, places.bias);
  if (places.aux) set(operation_.get(), CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, places.aux);
}

bool Matmul::choose_algorithm(cublasLtHandle_t handle, const Places& places) {
  set_addresses(places);  // The library considers the alignment of these addresses.
  cublasLtMatmulPreference_t made = nullptr;
  check(library()->create_preference(&made));
  const Owned<cublasLtMatmulPreference_t> preference(made, library()->destroy_preference);
  // Allow partial sums over the depth only if a separate step adds them, not in order of arrival.
  constexpr std::uint32_t in_order = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  set(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, in_order);
  set(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  const auto start = form_.start == Start::matrix ? form_.start_alignment : form_.c_alignment;
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, form_.b.alignment);
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, form_.a.alignment);
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, start);
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, form_.c_alignment);

  cublasLtMatmulHeuristicResult_t best = {};
  int found = 0;
  const auto outcome = library()->advise(handle, operation_.get(), a_.get(), b_.get(), start_.get(),
                                         c_.get(), made, 1, &best, &found);
  if (outcome == CUBLAS_STATUS_NOT_SUPPORTED || (outcome == CUBLAS_STATUS_SUCCESS && found == 0))
    return false;
  // The documentation does not say which types go with which epilogue.
  if (outcome == CUBLAS_STATUS_INVALID_VALUE && form_.epilogue != Kind::none) return false;
  check(outcome);
  check(best.state);
  algorithm_ = best.algo;
  return true;
}

void Matmul::run(cublasLtHandle_t handle, const Places& places, void* workspace,
                 cudaStream_t queue) const {
  set_addresses(places);
  const void* start = places.start ? places.start : places.c;
  const float alpha = 1, beta = places.start ? 1 : 0;
  check(library()->multiply(handle, operation_.get(), &alpha, places.b, a_.get(), places.a,
                            b_.get(), &beta, start, start_.get(), places.c, c_.get(), &algorithm_,
                            workspace, workspace_bytes, queue));
}

}  // namespace troupe::kernels::cublas_lt
