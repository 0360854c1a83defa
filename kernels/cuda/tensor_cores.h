#pragma once

#include <memory>

#include "core/result.h"
#include "kernels/cuda/cublas_lt/epilogue.h"
#include "kernels/cuda/cudnn/attention.h"
#include "kernels/cuda/cudnn/convolution.h"
#include "kernels/cuda/cudnn/graph_runner.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/machine/queue.h"
#include "kernels/device_kernels.h"

namespace troupe::kernels::cuda {

/// NVIDIA's libraries, opened for the work of one queue. An algorithm or graph is prepared when its
/// form of work first occurs, and kept.
class TensorCores {
 public:
  /// `remark` receives, once for each form, what cuDNN does not compute, and why.
  static Result<std::unique_ptr<TensorCores>> open(Remark remark);
  virtual ~TensorCores() = default;

  // Floats are multiplied in tf32. If can_multiply() returns false, multiply() throws.
  virtual bool can_multiply(const DeviceProduct<float>& product,
                            const cublas_lt::Epilogue<float>& epilogue) = 0;
  virtual bool can_multiply(const DeviceProduct<Float16>& product,
                            const cublas_lt::Epilogue<Float16>& epilogue) = 0;
  virtual bool can_multiply(const DeviceProduct<BFloat16>& product,
                            const cublas_lt::Epilogue<BFloat16>& epilogue) = 0;
  virtual void multiply(const DeviceProduct<float>& product,
                        const cublas_lt::Epilogue<float>& epilogue, cudaStream_t queue) = 0;
  virtual void multiply(const DeviceProduct<Float16>& product,
                        const cublas_lt::Epilogue<Float16>& epilogue, cudaStream_t queue) = 0;
  virtual void multiply(const DeviceProduct<BFloat16>& product,
                        const cublas_lt::Epilogue<BFloat16>& epilogue, cudaStream_t queue) = 0;

  // Each returns null if the library cannot compute it.
  virtual const cudnn::ReadyGraph* attention_forward(const cudnn::AttentionProblem& problem) = 0;
  virtual const cudnn::ReadyGraph* attention_backward(const cudnn::AttentionProblem& problem) = 0;
  virtual const cudnn::ReadyGraph* convolution(cudnn::Kind kind,
                                               const cudnn::ConvolutionProblem& problem) = 0;
};

/// Returns the libraries of the stream's device, which is a CUDA device. The first call opens them,
/// and throws if that fails.
TensorCores& tensor_cores_of(const Stream& stream);

/// Kernels that use these libraries, or our own kernels if a library cannot.
extern const TensorCoreKernels<float> tf32_kernels;
extern const TensorCoreKernels<Float16> fp16_kernels;
extern const TensorCoreKernels<BFloat16> bf16_kernels;

}  // namespace troupe::kernels::cuda
