#include "kernels/cuda/cublas_lt/products.h"

#include <exception>
#include <utility>

namespace troupe::kernels::cublas_lt {

Result<std::unique_ptr<Products>> Products::open() try {
  if (!library()) return library().error();
  std::unique_ptr<Products> products(new Products);
  check(library()->create(&products->handle_));
  cuda::check(cudaMalloc(&products->workspace_, workspace_bytes));
  return products;
} catch (const std::exception& refusal) {
  return Error{refusal.what()};
}

Products::~Products() {
  (void)cudaFree(workspace_);
  if (handle_) (void)library()->destroy(handle_);
}

const Matmul& Products::ready(const Form& form, const float* bias) {
  const auto found = ready_.find(form);
  if (found != ready_.end()) return found->second;
  Matmul matmul(form);
  matmul.choose_algorithm(handle_, bias);
  return ready_.emplace(form, std::move(matmul)).first->second;
}

void Products::multiply(const Form& form, const Places& places, cudaStream_t queue) {
  ready(form, places.start).run(handle_, places, workspace_, queue);
}

}  // namespace troupe::kernels::cublas_lt
