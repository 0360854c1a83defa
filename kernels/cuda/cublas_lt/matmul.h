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

/// What a product is but for its numbers: products of one form are computed alike.
struct Form {
  /// How a factor lies in memory, and what its address is a multiple of.
  struct Factor {
    enum class Order : std::uint8_t { by_row, by_column } order = Order::by_row;
    std::int64_t stride = 0;
    std::uint32_t alignment = 0;
    auto operator<=>(const Factor&) const = default;
  };
  /// What is multiplied. Numbers in tf32 lie in memory as floats.
  enum class Element : std::uint8_t { tf32, f16, bf16 };
  /// What sums begin with.
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

  /// Of Float16, BFloat16, or float for tf32, which has no epilogues.
  template <class Number>
  static Form of(const DeviceProduct<Number>& product, const Epilogue<Number>& epilogue = {});
  /// As the library's documents say; there may still be no algorithm.
  bool is_possible() const;
  auto operator<=>(const Form&) const = default;
};

std::string to_string(const Form& form);

/// Where a product's numbers lie.
struct Places {
  const void* a = nullptr;
  const void* b = nullptr;
  const float* start = nullptr;  // A matrix.
  void* c = nullptr;
  // As the library names them: a row that is added or made, and the matrix that an epilogue reads
  // or writes beside its result.
  const void* bias = nullptr;
  const void* aux = nullptr;

  template <class Number>
  static Places of(const DeviceProduct<Number>& product, const Epilogue<Number>& epilogue = {});
};

/// Bytes. The same for every product: it may decide between algorithms.
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

/// A form in cuBLASLt's own terms. To it matrices lie column by column, so that it computes the
/// transposed product: c^T = start^T + b^T a^T. Making one needs no driver.
class Matmul {
 public:
  /// Throws what the library refuses.
  explicit Matmul(const Form& form);

  /// Before it is run, for places like those that will be. False where the library has none.
  bool choose_algorithm(cublasLtHandle_t handle, const Places& places);
  /// Of a product of that form. `workspace` has workspace_bytes.
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
