#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/memory/device.h"
#include "core/result.h"

namespace troupe::kernels::cuda {

/// Tells CUDA, by the environment, to have a connection for each of up to 32 queues, and to load
/// all kernels at once: one that is loaded late may wait for all queues. What somebody has set
/// stays. Comes before all else here.
void prepare_process();

/// An error where a GPU has more queues than connections: two of them would share one, and wait for
/// each other where nothing says so, perhaps for ever.
Status check_queues(int queues);

/// How many GPUs this process has; an error says why there are none.
Result<int> count_devices();

/// Which GPU it is, for all processes alike: a MIG instance is one of its own.
Result<std::string> uuid_of(int number);
/// All GPUs of this process whose memory this one can read, by their uuids: itself among them.
Result<std::vector<std::string>> gpus_in_reach(int number);

/// Hears, from the thread that gives a GPU work, what is computed there more slowly than one may
/// expect, and why.
using Remark = std::function<void(const std::string&)>;

/// A GPU of this process, by its number. All that is given to it goes through one queue.
Result<std::unique_ptr<Device>> open_device(
    int number, Remark remark = [](const std::string&) {});

/// How often work that is repeated was given to a GPU's queue.
struct GraphCounts {
  std::uint64_t played = 0;    // As a graph, by one launch.
  std::uint64_t plain = 0;     // Kernel by kernel.
  std::uint64_t recorded = 0;  // Graphs that were made,
  std::uint64_t refused = 0;   // and those that CUDA would not make.
};
/// Of a GPU that open_device() has opened; on the thread that gives it work.
GraphCounts graph_counts(const Device& gpu);

/// What CUDA calls the stream of a GPU that open_device() has opened.
void* native_queue(Device& gpu);

/// Whether the libraries are there without which a GPU's tensor cores compute nothing: their names
/// and versions, or which is missing and what to do. Needs no GPU.
Result<std::string> tensor_core_libraries();

}  // namespace troupe::kernels::cuda
