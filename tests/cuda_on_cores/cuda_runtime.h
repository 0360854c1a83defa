// The part of CUDA's runtime that kernels/cuda uses, on the cores, so that its kernels are tested
// without a GPU. A queue works only while somebody waits or queries an event, so tests detect a
// host that reads too early. Threads of a block run in turn, so tests detect a thread that reads
// before another one has written. A host that touches device memory crashes at once.
#pragma once

#include <math.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/cuda_on_cores/block.h"
#include "tests/cuda_on_cores/driver.h"
#include "tests/cuda_on_cores/queue.h"

#define __global__
#define __device__
#define __host__
#define __shared__ static thread_local
#define __launch_bounds__(...)

using cuda_on_cores::blockDim;
using cuda_on_cores::blockIdx;
using cuda_on_cores::dim3;
using cuda_on_cores::gridDim;
using cuda_on_cores::threadIdx;

struct alignas(16) float4 {
  float x, y, z, w;
};

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorNoDevice = 100,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorInvalidPtx = 218,
  cudaErrorJitCompilerNotFound = 221,
  cudaErrorUnsupportedPtxVersion = 222,
  cudaErrorJitCompilationDisabled = 223,
  cudaErrorSymbolNotFound = 500,
  cudaErrorNotReady = 600,
  cudaErrorLaunchFailure = 719,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901
};
enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
enum cudaMemcpyKind { cudaMemcpyDefault = 4 };
enum cudaDriverEntryPointQueryResult {
  cudaDriverEntryPointSuccess = 0,
  cudaDriverEntryPointSymbolNotFound = 1,
};
constexpr unsigned cudaStreamNonBlocking = 1, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2,
                   cudaEventDisableTiming = 2;
constexpr unsigned long long cudaEnableDefault = 0;
// Has the name that headers use which do not include CUDA.
struct CUstream_st : cuda_on_cores::Queue {
  const int device = cuda_on_cores::current_device();
};
struct CUevent_st : cuda_on_cores::Event {};
using cudaStream_t = CUstream_st*;
using cudaEvent_t = CUevent_st*;
using cudaGraph_t = cuda_on_cores::Recording*;
using cudaGraphExec_t = cuda_on_cores::PlayableRecording*;

inline const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "an argument is wrong";
    case cudaErrorMemoryAllocation:
      return "there is not enough memory";
    case cudaErrorNoDevice:
      return "there is no device";
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorNoKernelImageForDevice:
      return "there is no code for this device";
    case cudaErrorInvalidPtx:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilationDisabled:
      return "PTX cannot be compiled";
    case cudaErrorSymbolNotFound:
      return "there is no such symbol";
    case cudaErrorNotReady:
      return "not yet";
    case cudaErrorLaunchFailure:
      return "a kernel went wrong";
    case cudaErrorStreamCaptureUnsupported:
      return "this cannot be done while work is recorded";
    case cudaErrorStreamCaptureInvalidated:
      return "what was recorded is spoilt";
  }
  return "";
}
inline cudaError_t outcome_of(bool good) { return good ? cudaSuccess : cudaErrorLaunchFailure; }

inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = cuda_on_cores::gpus_of_process();
  return cudaSuccess;
}
inline cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = cuda_on_cores::gpus_reach_each_other() ? 1 : 0;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int number) {
  cuda_on_cores::set_current_device(number);
  return cudaSuccess;
}
inline cudaError_t cudaDeviceReset() {
  cuda_on_cores::leave_current_device();
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* number) {
  *number = cuda_on_cores::current_device();
  return cudaSuccess;
}
/// A device has few multiprocessors, so that few rows suffice for several turns of a block.
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = 2;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = cuda_on_cores::compute_capability() / 10;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = cuda_on_cores::compute_capability() % 10;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = cuda_on_cores::most_shared_bytes;
      break;
  }
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetPCIBusId(char* bus, int length, int number) {
  std::snprintf(bus, static_cast<std::size_t>(length), "0000:%02x:00.0",
                cuda_on_cores::number_on_machine(number) + 1);
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* queue, unsigned) {
  cuda_on_cores::use_current_device();
  *queue = new CUstream_st;
  return cudaSuccess;
}
/// All queues have the same priority.
inline cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* most) {
  *least = *most = 0;
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* queue, unsigned flags, int) {
  return cudaStreamCreateWithFlags(queue, flags);
}
inline cudaError_t cudaStreamDestroy(cudaStream_t queue) {
  delete queue;
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t queue) {
  cuda_on_cores::count_host_wait();
  return outcome_of(queue->work_off());
}

inline cudaError_t cudaStreamBeginCapture(cudaStream_t queue, cudaStreamCaptureMode) {
  return queue->begin_recording() ? cudaSuccess : cudaErrorStreamCaptureUnsupported;
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t queue, cudaGraph_t* graph) {
  *graph = queue->end_recording().release();
  return *graph ? cudaSuccess : cudaErrorStreamCaptureInvalidated;
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t graph,
                                        unsigned long long) {
  *ready = new cuda_on_cores::PlayableRecording(*graph);
  return cudaSuccess;
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t ready) {
  delete ready;
  return cudaSuccess;
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t ready, cudaStream_t queue) {
  return outcome_of(queue->put(*ready));
}
inline cudaError_t cudaGetLastError() { return cudaSuccess; }

inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  cuda_on_cores::use_current_device();
  *event = new CUevent_st;
  return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t queue) {
  return outcome_of(queue->put(*event));
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t queue, cudaEvent_t event, unsigned) {
  return outcome_of(queue->put_wait(*event));
}
inline cudaError_t cudaEventQuery(cudaEvent_t event) {
  switch (cuda_on_cores::Queue::ask(*event)) {
    case cuda_on_cores::Answer::done:
      return cudaSuccess;
    case cuda_on_cores::Answer::not_yet:
      return cudaErrorNotReady;
    case cuda_on_cores::Answer::failed:
      return cudaErrorLaunchFailure;
  }
  return cudaErrorLaunchFailure;
}

inline cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = cuda_on_cores::device_memory() - cuda_on_cores::device_memory_taken();
  *total = cuda_on_cores::device_memory();
  return cudaSuccess;
}
inline cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  cuda_on_cores::use_current_device();
  if (cuda_on_cores::spoils_recording()) return cudaErrorStreamCaptureUnsupported;
  *memory = cuda_on_cores::take_host_memory(bytes);
  return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}
inline cudaError_t cudaFreeHost(void* memory) {
  cuda_on_cores::use_current_device();
  cuda_on_cores::release_host_memory(memory);
  return cudaSuccess;
}
/// Memory for libraries only.
inline cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  cuda_on_cores::use_current_device();
  if (cuda_on_cores::spoils_recording()) return cudaErrorStreamCaptureUnsupported;
  *memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}
inline cudaError_t cudaFree(void* memory) {
  cuda_on_cores::use_current_device();
  if (cuda_on_cores::spoils_recording()) return cudaErrorStreamCaptureUnsupported;
  std::free(memory);
  return cudaSuccess;
}
inline cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                                    unsigned long long,
                                                    cudaDriverEntryPointQueryResult* outcome) {
  *function = cuda_on_cores::find_driver_function(name);
  *outcome = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return *function ? cudaSuccess : cudaErrorSymbolNotFound;
}
namespace cuda_on_cores {
inline void copy(void* to, const void* from, std::size_t bytes) {
  reopen_host_memory(to);
  reopen_host_memory(from);
  std::memcpy(to, from, bytes);
}
}  // namespace cuda_on_cores

/// Fails for memory that is mapped only for another device.
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                                   cudaStream_t queue) {
  if (!cuda_on_cores::may_read(queue->device, from, bytes)) return cudaErrorLaunchFailure;
  const bool all_reachable = cuda_on_cores::is_reachable(from) && cuda_on_cores::is_reachable(to);
  if (!all_reachable && cuda_on_cores::spoils_recording()) return cudaErrorStreamCaptureUnsupported;
  return outcome_of(queue->put([=] { cuda_on_cores::copy(to, from, bytes); }));
}
/// Copies through the host what the device cannot read.
inline cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                       cudaStream_t queue) {
  cuda_on_cores::count_staged_copy();
  return outcome_of(queue->put([=] { cuda_on_cores::copy(to, from, bytes); }));
}
inline cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t queue) {
  return outcome_of(queue->put([=] { std::memset(to, value, bytes); }));
}

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
};
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* kernel, cudaFuncAttribute, int bytes) {
  if (bytes > cuda_on_cores::most_shared_bytes) return cudaErrorInvalidValue;
  cuda_on_cores::allow_shared(reinterpret_cast<void (*)()>(kernel),
                              static_cast<std::size_t>(bytes));
  return cudaSuccess;
}
struct cudaFuncAttributes {};
template <class Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, Kernel*) {
  return cuda_on_cores::has_code() ? cudaSuccess : cudaErrorNoKernelImageForDevice;
}
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments... arguments) {
  const std::size_t shared = config->dynamicSmemBytes;
  if (!cuda_on_cores::may_share(reinterpret_cast<void (*)()>(kernel), shared))
    return cudaErrorInvalidValue;
  cuda_on_cores::count_kernel();
  return outcome_of(config->stream->put(
      [grid = config->gridDim, block = config->blockDim, shared, kernel, arguments...] {
        cuda_on_cores::shut_host_memory();
        cuda_on_cores::run(grid, block, shared, [&] { kernel(arguments...); });
      }));
}

inline void __syncthreads() { cuda_on_cores::wait_for_block(0); }
inline int __syncthreads_or(int value) { return cuda_on_cores::wait_for_block(value); }
template <class T>
T __shfl_down_sync(unsigned, T value, unsigned delta, int width) {
  const int lane = cuda_on_cores::lane(), in_group = lane % width;
  const bool inside = in_group + static_cast<int>(delta) < width;
  return cuda_on_cores::exchange(value, inside ? lane + static_cast<int>(delta) : lane);
}
template <class T>
T __shfl_sync(unsigned, T value, int from, int width) {
  const int lane = cuda_on_cores::lane();
  return cuda_on_cores::exchange(value, lane - lane % width + from);
}

/// Reads memory that no thread of the kernel writes.
template <class T>
T __ldg(const T* x) {
  return *x;
}
/// Requires the whole warp.
inline int __reduce_max_sync(unsigned, int value) {
  for (int half = 16; half > 0; half /= 2) {
    const int other = cuda_on_cores::exchange(value, cuda_on_cores::lane() ^ half);
    value = other > value ? other : value;
  }
  return value;
}
/// Threads of a block run in turn, so nobody comes between.
inline int atomicMax(int* most, int value) {
  const int before = *most;
  if (value > before) *most = value;
  return before;
}

inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
