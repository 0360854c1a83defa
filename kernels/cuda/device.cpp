#include "kernels/cuda/device.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "core/stream.h"
#include "kernels/cuda/arena.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/queue.h"

namespace troupe::kernels::cuda {
namespace {

class CudaDevice final : public Device {
 public:
  CudaDevice(int number, cudaStream_t queue) : number_(number), queue_(queue) {}
  ~CudaDevice() override { (void)cudaStreamDestroy(queue_); }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const DeviceKernels& kernels() const override { return all_kernels; }
  void enter() override { check(cudaSetDevice(number_)); }
  void wait() override { check(cudaStreamSynchronize(queue_)); }

  Place place() const override { return {number_}; }
  MemoryPool& host_memory() override { return host_memory_; }
  void copy(const void* from, Place from_place, void* to, std::size_t bytes) override {
    // Another GPU's memory need not be mapped here.
    if (from_place.is_host() || from_place == place())
      check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, queue_));
    else
      check(cudaMemcpyPeerAsync(to, number_, from, from_place.gpu, bytes, queue_));
  }

  cudaStream_t queue() const { return queue_; }

 private:
  int number_;
  cudaStream_t queue_;
  MemoryPool host_memory_{pinned_memory()};
};

}  // namespace

Result<int> count_devices() {
  int count = 0;
  const auto outcome = cudaGetDeviceCount(&count);
  if (outcome != cudaSuccess) return Error{cudaGetErrorString(outcome)};
  return count;
}

Result<std::unique_ptr<Device>> open_device(int number) {
  cudaStream_t queue = nullptr;
  auto outcome = cudaSetDevice(number);
  if (outcome == cudaSuccess) outcome = cudaStreamCreateWithFlags(&queue, cudaStreamNonBlocking);
  if (outcome != cudaSuccess)
    return Error{"GPU " + std::to_string(number) + ": " + cudaGetErrorString(outcome)};
  return std::unique_ptr<Device>(std::make_unique<CudaDevice>(number, queue));
}

cudaStream_t queue_of(const Stream& stream) {
  return static_cast<const CudaDevice&>(*stream.device()).queue();
}

void check(cudaError_t outcome) {
  if (outcome != cudaSuccess)
    throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(outcome));
}

void read_back(Stream& stream, const Tensor& from, void* to) {
  check(cudaMemcpyAsync(to, from.raw(), from.bytes(), cudaMemcpyDefault, queue_of(stream)));
  stream.wait();
}

}  // namespace troupe::kernels::cuda
