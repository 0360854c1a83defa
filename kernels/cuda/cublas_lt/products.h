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

/// Products on tensor cores, on one GPU. Their workspace is one: a queue has done with it before
/// another one gets products, or the same one, in order. For each form the library is
/// asked once for an algorithm, which then stays; none that adds parts of a sum in an order of
/// chance is taken, and the workspace is always of one size: so the same product has the same bits.
/// Gelu is taken within products only where that is done in one kernel.
class Products {
 public:
  /// An error where there is no library, no driver, or no memory for the workspace.
  static Result<std::unique_ptr<Products>> open();
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// Whether the library does it well; where it does not, multiply() throws.
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
  std::map<Form, std::optional<Matmul>> ready_;  // None: it cannot be done.
};

}  // namespace troupe::kernels::cublas_lt
