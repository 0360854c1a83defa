// Replaces tensor_cores.cpp if the headers of cuBLASLt or cuDNN were not found.

#include "kernels/cuda/device.h"
#include "kernels/cuda/tensor_cores.h"

namespace troupe::kernels::cuda {

Result<std::unique_ptr<TensorCores>> TensorCores::open(Remark) {
  return tensor_core_libraries().error();
}

Result<std::string> tensor_core_libraries() {
  return Error{
      "this program was built without the headers of cuBLASLt and cuDNN 9.19 or later; install "
      "them and build it again"};
}

Status runtime_compiler() { return tensor_core_libraries().error(); }

const TensorCoreKernels<float> tf32_kernels = {};
const TensorCoreKernels<Float16> fp16_kernels = {};
const TensorCoreKernels<BFloat16> bf16_kernels = {};

}  // namespace troupe::kernels::cuda
