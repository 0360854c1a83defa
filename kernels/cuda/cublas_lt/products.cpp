#include "kernels/cuda/cublas_lt/products.h"

#include <exception>
#include <stdexcept>
#include <utility>

namespace troupe::kernels::cublas_lt {
namespace {

/// Returns whether gelu() is fused. On other GPUs the library appends a slow separate kernel.
bool fuses_gelu(int compute_capability) {
  return compute_capability == 9 || compute_capability == 10;
}

}  // namespace

Result<std::unique_ptr<Products>> Products::open() try {
  if (!library()) return library().error();
  std::unique_ptr<Products> products(new Products);
  check(library()->create(&products->handle_));
  cuda::check(cudaMalloc(&products->workspace_, workspace_bytes));
  int gpu = 0, major = 0;
  cuda::check(cudaGetDevice(&gpu));
  cuda::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu));
  products->fuses_gelu_ = fuses_gelu(major);
  return products;
} catch (const std::exception& refusal) {
  return Error{refusal.what()};
}

Products::~Products() {
  (void)cudaFree(workspace_);
  if (handle_) (void)library()->destroy(handle_);
}

const Matmul* Products::ready(const Form& form, const Places& places) {
  auto found = ready_.find(form);
  if (found == ready_.end()) found = ready_.emplace(form, prepared(form, places)).first;
  return found->second ? &*found->second : nullptr;
}

std::optional<Matmul> Products::prepared(const Form& form, const Places& places) const {
  if (!form.is_possible() || (has_gelu(form.epilogue) && !fuses_gelu_)) return {};
  Matmul matmul(form);
  if (!matmul.choose_algorithm(handle_, places)) return {};
  return matmul;
}

void Products::multiply(const Form& form, const Places& places, cudaStream_t queue) {
  const auto* matmul = ready(form, places);
  if (!matmul)
    throw std::runtime_error("cuBLASLt has no algorithm for a product of " + to_string(form) +
                             "; use precision.compute = \"fp32\"");
  matmul->run(handle_, places, workspace_, queue);
}

}  // namespace troupe::kernels::cublas_lt
