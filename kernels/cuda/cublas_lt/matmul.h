#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "kernels/cuda/cublas_lt/epilogue.h"
#include "kernels/cuda/cublas_lt/library.h"
#include "kernels/cuda/machine/queue.h"
#include "kernels/device_kernels.h"

namespace troupe::kernels::cublas_lt {

/// Everything about a product except its numbers. Products of one form use one algorithm.
struct Form {
  /// A factor's layout in memory, and the largest power of two that divides its address.
  struct Factor {
    enum class Order : std::uint8_t { by_row, by_column } order = Order::by_row;
    std::int64_t stride = 0;
    std::uint32_t alignment = 0;
    auto operator<=>(const Factor&) const = default;
  };
  /// The type that is multiplied. tf32 numbers lie in memory as floats.
  enum class Element : std::uint8_t { tf32, f16, bf16 };
  /// The initial values of the sums.
  enum class Start : std::uint8_t { zeros, one_row, matrix };

  Element element = Element::bf16;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  Factor a, b;
  Start start = Start::zeros;
  std::int64_t start_stride = 0;
  std::uint32_t start_alignment = 0;
  std::int64_t c_stride = 0;
  std::uint32_t c_alignment = 0;
  EpilogueKind epilogue = EpilogueKind::none;
  std::uint32_t bias_alignment = 0;
  std::uint32_t aux_alignment = 0;

  /// Returns the form of a product in Float16, BFloat16, or float for tf32, which has no epilogues.
  template <class Number>
  static Form of(const DeviceProduct<Number>& product, const Epilogue<Number>& epilogue = {});
  /// Returns what the library's documentation allows. There may still be no algorithm.
  bool is_possible() const;
  auto operator<=>(const Form&) const = default;
};

std::string to_string(const Form& form);

/// The addresses of a product's numbers.
struct Places {
  const void* a = nullptr;
  const void* b = nullptr;
  const float* start = nullptr;  // A matrix, or null.
  void* c = nullptr;
  // In the library's words: a row that is added or computed, and the matrix that an epilogue reads
  // or writes besides its result.
  const void* bias = nullptr;
  const void* aux = nullptr;

  template <class Number>
  static Places of(const DeviceProduct<Number>& product, const Epilogue<Number>& epilogue = {});
};

/// In bytes. It may influence the choice of an algorithm, so it is equal for all products.
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

/// A form as cuBLASLt objects. The library stores matrices by column, so it computes the transposed
/// product: c^T = start^T + b^T a^T. Construction needs no driver.
class Matmul {
 public:
  /// Throws if the library refuses the form.
  explicit Matmul(const Form& form);

  /// Chooses the algorithm for run(), for addresses aligned like `places`. Returns false if none.
  bool choose_algorithm(cublasLtHandle_t handle, const Places& places);
  /// Computes a product of this form. `workspace` has workspace_bytes.
  void run(cublasLtHandle_t handle, const Places& places, void* workspace,
           cudaStream_t queue) const;

 private:
  template <class Thing>
  using Owned = std::unique_ptr<std::remove_pointer_t<Thing>, cublasStatus_t (*)(Thing)>;

  void set_addresses(const Places& places) const;

  Form form_;
  Owned<cublasLtMatmulDesc_t> operation_;
  Owned<cublasLtMatrixLayout_t> a_, b_, start_, c_;  // The library's a is our b.
  cublasLtMatmulAlgo_t algorithm_ = {};
};

}  // namespace troupe::kernels::cublas_lt
