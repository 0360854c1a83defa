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

/// NVIDIA's libraries, opened for the work of one queue. What they need for a form of work they
/// make when it comes for the first time, and keep.
class TensorCores {
 public:
  /// `remark` hears, when it comes for the first time, what cuDNN does not compute, and why.
  static Result<std::unique_ptr<TensorCores>> open(Remark remark);
  virtual ~TensorCores() = default;

  // Of floats in tf32. Where the library cannot, as the first say, the others throw.
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

  // Null where the library cannot.
  virtual const cudnn::ReadyGraph* attention_forward(const cudnn::AttentionProblem& problem) = 0;
  virtual const cudnn::ReadyGraph* attention_backward(const cudnn::AttentionProblem& problem) = 0;
  virtual const cudnn::ReadyGraph* convolution(cudnn::Kind kind,
                                               const cudnn::ConvolutionProblem& problem) = 0;
};

/// Of the stream's device, which is one of CUDA. Opened when they are asked for first; throws where
/// that fails.
TensorCores& tensor_cores_of(const Stream& stream);

/// What is made of them, and of kernels of our own where they cannot.
extern const TensorCoreKernels<float> tf32_kernels;
extern const TensorCoreKernels<Float16> fp16_kernels;
extern const TensorCoreKernels<BFloat16> bf16_kernels;

}  // namespace troupe::kernels::cuda
