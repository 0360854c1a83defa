#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/memory/device.h"
#include "core/result.h"

namespace troupe::kernels::cuda {

/// Sets environment variables that CUDA reads: a connection for each of up to 32 queues, and
/// loading all kernels at once, because loading a kernel later may wait for all queues. Keeps
/// variables that the user has set. The process must call it before any other function here.
void prepare_process();

/// Returns an error if a GPU that is opened so many times gets more queues than connections. Two
/// queues that share a connection may wait for each other, perhaps for ever.
Status check_queues(int times_opened);
/// Returns how many more queues such a GPU can have.
int free_queues(int times_opened);

/// Returns the number of GPUs of this process. An error says why there are none.
Result<int> count_devices();

/// Returns the identity of a GPU, which is equal in all processes. A MIG instance has its own.
Result<std::string> uuid_of(int number);
/// Returns the uuids of this process's GPUs whose memory GPU `number` can read, including its own.
Result<std::vector<std::string>> gpus_in_reach(int number);

/// A callback for what a GPU computes more slowly than expected, and why. Runs on the thread that
/// gives the GPU its work.
using Remark = std::function<void(const std::string&)>;

/// Opens a GPU of this process by its number. All its work goes through one queue. A second queue
/// records graphs. Returns an error if the kernels are not compiled for the GPU.
Result<std::unique_ptr<Device>> open_device(
    int number, Remark remark = [](const std::string&) {});

/// Loads the libraries for a GPU's tensor cores. Otherwise its first product loads them, which can
/// take seconds.
Status open_tensor_cores(Device& gpu);

/// How often repeated work was given to a GPU's queue.
struct GraphCounts {
  std::uint64_t played = 0;    // As a graph, with one launch.
  std::uint64_t plain = 0;     // Kernel by kernel.
  std::uint64_t recorded = 0;  // Graphs that CUDA recorded.
  std::uint64_t refused = 0;   // Work lists that CUDA refused to record.
};
/// Returns the counts of a GPU from open_device(). Only the thread that gives it work may call it.
GraphCounts graph_counts(const Device& gpu);

/// Returns the CUDA stream of a GPU from open_device().
void* native_queue(Device& gpu);

/// Returns names and versions of the libraries that tensor cores need. An error says which one is
/// missing and what to do. Needs no GPU.
Result<std::string> tensor_core_libraries();
/// Returns an error if NVRTC is missing. cuDNN compiles attention with it; without it a slower
/// kernel in fp32 computes attention. Needs no GPU.
Status runtime_compiler();

}  // namespace troupe::kernels::cuda
