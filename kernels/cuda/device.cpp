#include "kernels/cuda/device.h"

#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/stream.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_queue.h"
#include "kernels/cuda/machine/arena.h"
#include "kernels/cuda/machine/driver.h"
#include "kernels/cuda/machine/queue.h"
#include "kernels/cuda/tensor_cores.h"

namespace troupe::kernels::cuda {
namespace {

constexpr const char* connections_key = "CUDA_DEVICE_MAX_CONNECTIONS";
constexpr int usual_connections = 8;  // CUDA's documented default.
constexpr int queues_of_device = 2;   // For work, and for the recording of graphs.

std::string text_of(cudaError_t outcome) {
  return std::string("CUDA: ") + cudaGetErrorString(outcome);
}

struct Capability {
  int major = 0, minor = 0;
  std::string text() const { return std::to_string(major) + "." + std::to_string(minor); }
};

/// The kernels can be compiled for this compute capability and later ones.
constexpr Capability least_capability = {8, 0};

Result<Capability> capability_of(int number) {
  Capability found;
  auto outcome = cudaDeviceGetAttribute(&found.major, cudaDevAttrComputeCapabilityMajor, number);
  if (outcome == cudaSuccess)
    outcome = cudaDeviceGetAttribute(&found.minor, cudaDevAttrComputeCapabilityMinor, number);
  if (outcome != cudaSuccess) return Error{text_of(outcome)};
  if (found.major >= least_capability.major) return found;
  return Error{"found compute capability " + found.text() + ", wanted " + least_capability.text() +
               " or later (Ampere or newer); set train.device = \"cpu\""};
}

/// Returns whether CUDA refuses a kernel because the program has neither machine code for the GPU
/// nor PTX that the driver can compile for it.
bool is_lack_of_code(cudaError_t outcome) {
  return outcome == cudaErrorInvalidDeviceFunction || outcome == cudaErrorNoKernelImageForDevice ||
         outcome == cudaErrorInvalidPtx || outcome == cudaErrorUnsupportedPtxVersion ||
         outcome == cudaErrorJitCompilerNotFound || outcome == cudaErrorJitCompilationDisabled;
}

std::string lack_of_code(Capability found, cudaError_t outcome) {
  return "found compute capability " + found.text() + " and no kernels for it in this program (" +
         text_of(outcome) +
         "), which has " TROUPE_CUDA_CODE "; build it with -DTROUPE_CUDA_CARDS=" +
         std::to_string(found.major) + std::to_string(found.minor) +
         ", or use a newer driver, or set train.device = \"cpu\"";
}

int connections_of_gpu() {
  const char* set = std::getenv(connections_key);
  return set ? std::atoi(set) : usual_connections;
}

/// A CUDA device. Its marks are events in the queue, which are reused once they have passed.
class CudaDevice final : public Device {
 public:
  CudaDevice(int number, const Driver& driver, cudaStream_t queue, cudaStream_t recorder,
             Remark remark)
      : number_(number),
        driver_(driver),
        queue_(queue),
        recorder_(recorder),
        remark_(std::move(remark)),
        launches_(std::in_place, queue, recorder, host_memory_) {}
  /// Destroys graphs before the libraries that own their kernels, and libraries before their
  /// queues.
  ~CudaDevice() override {
    (void)cudaSetDevice(number_);
    launches_.reset();
    tensor_cores_.reset();
    for (const auto& [mark, event] : marked_) (void)cudaEventDestroy(event);
    for (const auto event : spare_) (void)cudaEventDestroy(event);
    for (const auto queue : {recorder_, queue_}) (void)cudaStreamDestroy(queue);
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const DeviceKernels& kernels() const override { return all_kernels; }
  void enter() override { check(cudaSetDevice(number_)); }
  void wait() override { check(cudaStreamSynchronize(launches_->native())); }

  MemoryPlace place() const override { return {number_}; }
  MemoryPool& host_memory() override { return host_memory_; }
  void copy(const void* from, MemoryPlace from_place, void* to, std::size_t bytes) override {
    const auto queue = launches_->native();
    if (from_place.is_host() || from_place == place() ||
        driver_.is_mapped_for(number_, from, bytes))
      check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, queue));
    else
      check(cudaMemcpyPeerAsync(to, number_, from, from_place.gpu, bytes, queue));
  }

  Mark mark() override {
    const std::lock_guard lock(mutex_);
    if (spare_.empty()) {
      cudaEvent_t event = nullptr;
      check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
      spare_.push_back(event);
    }
    // Collected repeated work may belong to another thread; it stays behind the mark.
    check(cudaEventRecord(spare_.back(), queue_));
    marked_.emplace_back(++last_, spare_.back());
    spare_.pop_back();
    return last_;
  }

  Result<Mark> passed() override {
    const std::lock_guard lock(mutex_);
    for (; !marked_.empty(); marked_.pop_front()) {
      const auto [mark, event] = marked_.front();
      const auto outcome = cudaEventQuery(event);
      if (outcome == cudaErrorNotReady) break;
      if (outcome != cudaSuccess) return Error{text_of(outcome)};
      passed_ = mark;
      spare_.push_back(event);
    }
    return passed_;
  }

  Mark follow(Device& other, Mark mark) override {
    static_cast<CudaDevice&>(other).hold_up(launches_->native(), mark);
    return this->mark();
  }

  void begin_repeated() override { launches_->begin_repeated(); }
  void end_repeated() override { launches_->end_repeated(); }
  void drop_repeated() override { launches_->drop_repeated(); }

  void begin_range(const char* name) override { (void)nvtxRangePushA(name); }
  void end_range() override { (void)nvtxRangePop(); }

  cudaStream_t queue() const { return queue_; }
  LaunchQueue& launches() { return *launches_; }
  const LaunchQueue& launches() const { return *launches_; }
  TensorCores& tensor_cores() {
    if (tensor_cores_) return *tensor_cores_;
    auto opened = TensorCores::open(remark_);
    if (!opened) throw std::runtime_error("tensor cores of a GPU: " + opened.error().text);
    return *(tensor_cores_ = std::move(*opened));
  }

 private:
  /// Makes `queue` wait until this device has passed the mark. Holds the mutex, so that the event
  /// cannot be reused: waiting for a reused event could take for ever.
  void hold_up(cudaStream_t queue, Mark mark) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(marked_, mark, &std::pair<Mark, cudaEvent_t>::first);
    if (found != marked_.end()) check(cudaStreamWaitEvent(queue, found->second, 0));
  }

  int number_;
  Driver driver_;
  cudaStream_t queue_, recorder_;
  Remark remark_;
  MemoryPool host_memory_{pinned_memory(number_)};
  std::optional<LaunchQueue> launches_;
  std::unique_ptr<TensorCores> tensor_cores_;  // Null until the first request.

  std::mutex mutex_;  // Threads of other devices look for events.
  Mark last_ = 0, passed_ = 0;
  std::deque<std::pair<Mark, cudaEvent_t>> marked_;  // Marks that have not been seen as passed.
  std::vector<cudaEvent_t> spare_;
};

}  // namespace

void prepare_process() {
  (void)setenv(connections_key, "32", 0);
  (void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
}

Status check_queues(int times_opened) {
  const int queues = times_opened * queues_of_device, connections = connections_of_gpu();
  if (queues <= connections) return Done{};
  return Error{"found " + std::to_string(queues) + " queues for each GPU, wanted at most " +
               std::to_string(connections) + " (" + connections_key +
               "); use more GPUs or fewer devices"};
}

int free_queues(int times_opened) { return connections_of_gpu() - times_opened * queues_of_device; }

Result<int> count_devices() {
  int count = 0;
  const auto outcome = cudaGetDeviceCount(&count);
  if (outcome != cudaSuccess) return Error{cudaGetErrorString(outcome)};
  return count;
}

Result<std::string> uuid_of(int number) {
  const auto driver = Driver::find();
  if (!driver) return driver.error();
  CUdevice device = 0;
  CUuuid uuid = {};
  auto said = driver->device(&device, number);
  if (said == CUDA_SUCCESS) said = driver->uuid(&uuid, device);
  if (said != CUDA_SUCCESS) return driver_error("the uuid of GPU " + std::to_string(number), said);
  std::string text;
  for (const char byte : uuid.bytes) {
    constexpr const char* digits = "0123456789abcdef";
    const auto value = static_cast<unsigned char>(byte);
    text += {digits[value / 16], digits[value % 16]};
  }
  return text;
}

Result<std::vector<std::string>> gpus_in_reach(int number) {
  const auto count = count_devices();
  if (!count) return count.error();
  std::vector<std::string> gpus;
  for (int other = 0; other < *count; ++other) {
    int reaches = other == number ? 1 : 0;
    if (other != number) (void)cudaDeviceCanAccessPeer(&reaches, number, other);
    if (reaches == 0) continue;
    auto uuid = uuid_of(other);
    if (!uuid) return uuid.error();
    gpus.push_back(std::move(*uuid));
  }
  return gpus;
}

Result<std::unique_ptr<Device>> open_device(int number, Remark remark) {
  const auto driver = Driver::find();
  if (!driver) return within("GPU " + std::to_string(number), driver.error());
  const auto capability = capability_of(number);
  if (!capability) return within("GPU " + std::to_string(number), capability.error());
  cudaStream_t queues[queues_of_device] = {};
  auto outcome = cudaSetDevice(number);
  for (auto& queue : queues)
    if (outcome == cudaSuccess) outcome = cudaStreamCreateWithFlags(&queue, cudaStreamNonBlocking);
  if (outcome == cudaSuccess) outcome = look_for_code();
  try {
    if (is_lack_of_code(outcome)) throw std::runtime_error(lack_of_code(*capability, outcome));
    check(outcome);
    return std::unique_ptr<Device>(
        std::make_unique<CudaDevice>(number, *driver, queues[0], queues[1], std::move(remark)));
  } catch (const std::exception& refusal) {
    for (const auto queue : queues)
      if (queue) (void)cudaStreamDestroy(queue);
    return Error{"GPU " + std::to_string(number) + ": " + refusal.what()};
  }
}

GraphCounts graph_counts(const Device& gpu) {
  return static_cast<const CudaDevice&>(gpu).launches().counts();
}

Status open_tensor_cores(Device& gpu) try {
  gpu.enter();
  (void)static_cast<CudaDevice&>(gpu).tensor_cores();
  return Done{};
} catch (const std::exception& refusal) {
  return Error{refusal.what()};
}

void* native_queue(Device& gpu) { return static_cast<CudaDevice&>(gpu).queue(); }

LaunchQueue& queue_of(const Stream& stream) {
  return static_cast<CudaDevice&>(*stream.device()).launches();
}

TensorCores& tensor_cores_of(const Stream& stream) {
  return static_cast<CudaDevice&>(*stream.device()).tensor_cores();
}

void check(cudaError_t outcome) {
  if (outcome != cudaSuccess) throw std::runtime_error(text_of(outcome));
}

void read_back(Stream& stream, const Tensor& from, void* to) {
  check(
      cudaMemcpyAsync(to, from.raw(), from.bytes(), cudaMemcpyDefault, queue_of(stream).native()));
  stream.wait();
}

}  // namespace troupe::kernels::cuda
