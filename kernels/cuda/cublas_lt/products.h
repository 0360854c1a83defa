#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>

#include "kernels/cuda/cublas_lt/matmul.h"
#include "kernels/cuda/machine/queue.h"
#include "kernels/device_kernels.h"

namespace troupe::kernels::cublas_lt {

/// Products on the tensor cores of one GPU. All share one workspace, so they must run in order: a
/// queue must be done before another queue gets products. The same product always has the same
/// bits: each form gets an algorithm once, no algorithm may add partial sums in arbitrary order,
/// and the workspace has one size. Gelu is fused only if the library does it in one kernel.
class Products {
 public:
  /// Returns an error if there is no library, no driver, or no memory for the workspace.
  static Result<std::unique_ptr<Products>> open();
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// Returns whether the library computes it well. If not, multiply() throws.
  template <class Number>
  bool can_multiply(const DeviceProduct<Number>& product, const Epilogue<Number>& epilogue) {
    return ready(Form::of(product, epilogue), Places::of(product, epilogue)) != nullptr;
  }
  template <class Number>
  void multiply(const DeviceProduct<Number>& product, const Epilogue<Number>& epilogue,
                cudaStream_t queue) {
    multiply(Form::of(product, epilogue), Places::of(product, epilogue), queue);
  }

 private:
  Products() = default;
  const Matmul* ready(const Form& form, const Places& places);
  std::optional<Matmul> prepared(const Form& form, const Places& places) const;
  void multiply(const Form& form, const Places& places, cudaStream_t queue);

  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  bool fuses_gelu_ = false;
  std::map<Form, std::optional<Matmul>> ready_;  // Empty: the library cannot compute it.
};

}  // namespace troupe::kernels::cublas_lt
