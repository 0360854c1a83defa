#include <cuda_runtime.h>

#include <string>

#include "kernels/cuda/cublas_lt/library.h"
#include "kernels/cuda/cudnn/library.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/machine/shared_library.h"

namespace troupe::kernels::cuda {

Result<std::string> tensor_core_libraries() {
  const auto& products = cublas_lt::library();
  if (!products) return products.error();
  const auto& graphs = cudnn::library();
  if (!graphs) return graphs.error();
  return products->name() + ", " + graphs->name();
}

Status runtime_compiler() {
  // cuDNN loads the version that its toolkit has.
  const auto file = SharedLibrary::open("libnvrtc.so." + std::to_string(CUDART_VERSION / 1000));
  if (!file) return file.error();
  return Done{};
}

}  // namespace troupe::kernels::cuda
