#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/memory/dtype.h"
#include "kernels/cuda/cublas_lt/library.h"
#include "kernels/float16.h"

struct cublasLtContext {};
struct cublasLtMatmulDescOpaque_t {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasOperation_t turn_a = CUBLAS_OP_N, turn_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;  // Has the result's type.
  void* aux = nullptr;   // Has the result's type.
  std::int64_t aux_stride = 0;

  bool is_fused() const {
    return epilogue != CUBLASLT_EPILOGUE_DEFAULT && epilogue != CUBLASLT_EPILOGUE_BIAS;
  }
  bool wants_aux() const {
    return epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS || epilogue == CUBLASLT_EPILOGUE_DGELU;
  }
  bool wants_bias() const {
    return epilogue != CUBLASLT_EPILOGUE_DEFAULT && epilogue != CUBLASLT_EPILOGUE_DGELU;
  }
};
/// Stored column by column.
struct cublasLtMatrixLayoutOpaque_t {
  cudaDataType_t type = CUDA_R_32F;
  std::int64_t rows = 0, columns = 0, stride = 0;
};
struct cublasLtMatmulPreferenceOpaque_t {
  std::size_t workspace = 0;
  std::uint32_t reductions = 7;
  std::array<std::uint32_t, 4> alignments{256, 256, 256, 256};
};

namespace {

using Layout = cublasLtMatrixLayoutOpaque_t;
using Operation = cublasLtMatmulDescOpaque_t;

template <class Value>
cublasStatus_t take(Value& value, const void* from, std::size_t bytes) {
  if (bytes != sizeof value) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&value, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

std::int64_t rows_of(const Layout& layout, cublasOperation_t turn) {
  return turn == CUBLAS_OP_N ? layout.rows : layout.columns;
}
std::int64_t columns_of(const Layout& layout, cublasOperation_t turn) {
  return turn == CUBLAS_OP_N ? layout.columns : layout.rows;
}

bool is_aligned(const void* address, std::uint64_t to) {
  return to != 0 && reinterpret_cast<std::uintptr_t>(address) % to == 0;
}

bool fit(const Operation& op, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  for (const Layout* layout : {&a, &b, &c, &d})
    if (layout->stride < layout->rows) return false;
  if (op.wants_bias() != (op.bias != nullptr) || op.wants_aux() != (op.aux != nullptr))
    return false;
  if (op.wants_aux() &&
      (op.aux_stride % 8 != 0 || op.aux_stride < d.rows || !is_aligned(op.aux, 16)))
    return false;
  // Without tf32 the library computes floats differently; with tf32 it accepts only floats.
  const bool in_tf32 = op.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  return a.type == b.type && (a.type == CUDA_R_32F) == in_tf32 && c.type == d.type &&
         (d.type == CUDA_R_32F || d.type == a.type) && rows_of(a, op.turn_a) == d.rows &&
         columns_of(a, op.turn_a) == rows_of(b, op.turn_b) &&
         columns_of(b, op.turn_b) == d.columns && c.rows == d.rows && c.columns == d.columns;
}

/// Returns an algorithm that encodes the problem it was chosen for.
cublasLtMatmulAlgo_t choice(const Operation& op, const Layout& a, const Layout& d) {
  const auto number = [](auto value) { return static_cast<std::uint64_t>(value); };
  return {{number(d.rows), number(d.columns), number(columns_of(a, op.turn_a)),
           number(op.turn_a) * 2 + number(op.turn_b), number(op.epilogue)}};
}

/// Rounds to nearest, ties away from zero, like a GPU's cvt.rna. Whether the library rounds like
/// that before its tensor cores drop the last 13 digits is unknown.
float rounded_to_tf32(float number) {
  if (!std::isfinite(number)) return number;
  const auto bits = std::bit_cast<std::uint32_t>(number);
  return std::bit_cast<float>((bits + (1u << 12)) & ~((1u << 13) - 1));
}

float number(const void* numbers, cudaDataType_t type, std::int64_t at) {
  switch (type) {
    case CUDA_R_32F:
      return static_cast<const float*>(numbers)[at];
    case CUDA_R_16F:
      return static_cast<const troupe::Float16*>(numbers)[at].to_float();
    case CUDA_R_16BF:
      return static_cast<const troupe::BFloat16*>(numbers)[at].to_float();
  }
  return 0;
}
void set_number(void* numbers, cudaDataType_t type, std::int64_t at, float value) {
  switch (type) {
    case CUDA_R_32F:
      static_cast<float*>(numbers)[at] = value;
      return;
    case CUDA_R_16F:
      static_cast<troupe::Float16*>(numbers)[at] = troupe::Float16::from(value);
      return;
    case CUDA_R_16BF:
      static_cast<troupe::BFloat16*>(numbers)[at] = troupe::BFloat16::from(value);
      return;
  }
}

enum class Order { by_row, by_column };

/// Returns a factor as the floats that the tensor cores see, without gaps.
std::vector<float> read(const void* numbers, const Layout& layout, cublasOperation_t turn,
                        Order order) {
  const std::int64_t rows = rows_of(layout, turn), columns = columns_of(layout, turn);
  const bool by_row = order == Order::by_row;
  // The distances of neighbours in the order that is wanted, and of its rows or columns.
  std::int64_t near = by_row ? layout.stride : 1, far = by_row ? 1 : layout.stride;
  if (turn == CUBLAS_OP_T) std::swap(near, far);
  std::vector<float> all;
  all.reserve(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = 0; i < (by_row ? rows : columns); ++i)
    for (std::int64_t j = 0; j < (by_row ? columns : rows); ++j) {
      const float found = number(numbers, layout.type, i * far + j * near);
      all.push_back(layout.type == CUDA_R_32F ? rounded_to_tf32(found) : found);
    }
  return all;
}

/// Computes gelu with tanh, the only form that the library has.
float gelu(float x) {
  return 0.5f * x * (1 + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
}
float gelu_slope(float x) {
  const float t = std::tanh(0.7978845608f * (x + 0.044715f * x * x * x));
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.7978845608f * (1 + 3 * 0.044715f * x * x);
}

/// Computes the gradient of a bias: the sums over the rows of the library's a, or the columns of
/// its b. Both are given as read() returns them.
void add_up(const Operation& op, const Layout& result, const float* a, const float* b,
            std::int64_t depth) {
  const bool of_a = op.epilogue == CUBLASLT_EPILOGUE_BGRADA;
  if (!of_a && op.epilogue != CUBLASLT_EPILOGUE_BGRADB) return;
  const float* const factor = of_a ? a : b;
  for (std::int64_t i = 0; i < (of_a ? result.rows : result.columns); ++i) {
    float sum = 0;
    for (std::int64_t k = 0; k < depth; ++k) sum += factor[i * depth + k];
    set_number(op.bias, result.type, i, sum);
  }
}

/// Applies the epilogue to a sum.
float finished(const Operation& op, cudaDataType_t type, std::int64_t row, std::int64_t column,
               float sum) {
  const std::int64_t in_aux = row + column * op.aux_stride;
  switch (op.epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB:
      return sum;
    case CUBLASLT_EPILOGUE_BIAS:
      return sum + number(op.bias, type, row);
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
      sum += number(op.bias, type, row);
      set_number(op.aux, type, in_aux, sum);
      return gelu(sum);
    case CUBLASLT_EPILOGUE_DGELU:
      return sum * gelu_slope(number(op.aux, type, in_aux));
  }
  return sum;
}

}  // namespace

std::size_t cublasLtGetVersion() { return 130100; }
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "the functionality is not supported"
                                               : "an unsupported value or parameter";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *desc = new Operation{.compute = compute};
  return scale == CUDA_R_32F ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void* value, std::size_t bytes) {
  switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(desc->turn_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(desc->turn_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return take(desc->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return take(desc->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return take(desc->aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return take(desc->aux_stride, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t stride) {
  *layout =
      new Layout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), stride};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value, std::size_t bytes) {
  switch (name) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return take(preference->workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return take(preference->reductions, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return take(preference->alignments[0], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return take(preference->alignments[1], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return take(preference->alignments[2], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return take(preference->alignments[3], value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  *found = 0;
  // The library returns INVALID_VALUE here, which a caller may take for a valid answer.
  if (!fit(*desc, *a, *b, *c, *d) || wanted != 1) return CUBLAS_STATUS_INTERNAL_ERROR;
  // The library may refuse such products too.
  if (desc->is_fused() && d->columns == 1) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (desc->is_fused() && d->rows == 1) return CUBLAS_STATUS_INVALID_VALUE;
  if (d->type != CUDA_R_32F && d->rows % 8 != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (d->type != a->type && desc->epilogue == CUBLASLT_EPILOGUE_BIAS && d->rows % 2 != 0)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  results[0] = {choice(*desc, *a, *d), preference->workspace, CUBLAS_STATUS_SUCCESS};
  for (std::size_t i = 0; i < 3; ++i)
    results[0].algo.data[5 + i] = preference->alignments[i == 2 ? 3 : i];
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, std::size_t workspace_bytes, cudaStream_t queue) {
  const auto chosen = choice(*desc, *a_layout, *d_layout);
  if (!fit(*desc, *a_layout, *b_layout, *c_layout, *d_layout) ||
      std::memcmp(chosen.data, algo->data, 5 * sizeof chosen.data[0]) != 0 ||
      !is_aligned(a, algo->data[5]) || !is_aligned(b, algo->data[6]) ||
      !is_aligned(d, algo->data[7]) || !is_aligned(workspace, 16) || workspace_bytes == 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  const float scale = *static_cast<const float*>(alpha), kept = *static_cast<const float*>(beta);
  queue->put([op = *desc, a, b, c, d, at = *a_layout, bt = *b_layout, ct = *c_layout,
              dt = *d_layout, scale, kept] {
    const std::int64_t depth = columns_of(at, op.turn_a);
    const auto rows_of_a = read(a, at, op.turn_a, Order::by_row);
    const auto columns_of_b = read(b, bt, op.turn_b, Order::by_column);
    add_up(op, dt, rows_of_a.data(), columns_of_b.data(), depth);
    for (std::int64_t column = 0; column < dt.columns; ++column)
      for (std::int64_t row = 0; row < dt.rows; ++row) {
        const float* const x = rows_of_a.data() + row * depth;
        const float* const y = columns_of_b.data() + column * depth;
        float sum = 0;
        for (std::int64_t k = 0; k < depth; ++k) sum = std::fma(x[k], y[k], sum);
        sum *= scale;
        if (kept != 0) sum += kept * number(c, ct.type, row + column * ct.stride);
        set_number(d, dt.type, row + column * dt.stride, finished(op, dt.type, row, column, sum));
      }
  });
  return CUBLAS_STATUS_SUCCESS;
}

namespace troupe::kernels::cublas_lt {

const Result<Library>& library() {
  static const Result<Library> all = Library{
      .version = cublasLtGetVersion,
      .text_of = cublasLtGetStatusString,
      .create = cublasLtCreate,
      .destroy = cublasLtDestroy,
      .create_operation = cublasLtMatmulDescCreate,
      .destroy_operation = cublasLtMatmulDescDestroy,
      .set_operation = cublasLtMatmulDescSetAttribute,
      .create_layout = cublasLtMatrixLayoutCreate,
      .destroy_layout = cublasLtMatrixLayoutDestroy,
      .create_preference = cublasLtMatmulPreferenceCreate,
      .destroy_preference = cublasLtMatmulPreferenceDestroy,
      .set_preference = cublasLtMatmulPreferenceSetAttribute,
      .advise = cublasLtMatmulAlgoGetHeuristic,
      .multiply = cublasLtMatmul,
  };
  return all;
}

}  // namespace troupe::kernels::cublas_lt
