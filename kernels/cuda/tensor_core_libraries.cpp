#include "kernels/cuda/cublas_lt/library.h"
#include "kernels/cuda/cudnn/library.h"
#include "kernels/cuda/device.h"

namespace troupe::kernels::cuda {

Result<std::string> tensor_core_libraries() {
  const auto& products = cublas_lt::library();
  if (!products) return products.error();
  const auto& graphs = cudnn::library();
  if (!graphs) return graphs.error();
  return products->name() + ", " + graphs->name();
}

}  // namespace troupe::kernels::cuda
