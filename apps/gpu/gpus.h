#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/memory/device.h"
#include "core/memory/exported_memory.h"
#include "core/memory/memory_pool.h"
#include "core/result.h"

namespace troupe::apps {

/// The GPUs that this process can use; an error says why there are none.
Result<int> count_gpus();
/// The libraries that a GPU's tensor cores are used by: "cuBLASLt 13.1.0, cuDNN 9.19.0". An error
/// says which is missing and what to do. Needs no GPU.
Result<std::string> gpu_libraries();

/// What is said to who wants one, and why it has none.
inline Error no_gpu(const std::string& why) {
  return {"train.device: wanted cuda, found no GPU: " + why + "; set train.device = \"cpu\""};
}
/// Comes before all else that has to do with them.
void prepare_for_gpus();

// For a run that uses them.

/// An error where so many devices on one GPU would hold one another up.
Status check_gpu_queues(int devices);

/// `remark` hears, from the thread that gives it work, what it computes more slowly than one may
/// expect, and why.
Result<std::unique_ptr<Device>> open_gpu(int number,
                                         std::function<void(const std::string&)> remark);
/// What its driver calls the queue of an opened GPU.
void* queue_of_gpu(Device& gpu);
/// A GPU's own; others of this process read it, too, where they reach it.
Result<std::unique_ptr<MemorySource>> gpu_memory(int number, std::span<const int> others = {});
/// The same, for other processes.
Result<ExportedMemory*> exported_gpu_memory(MemorySource& memory);
/// Bytes that each of them has left, of the first so many.
Result<std::vector<std::int64_t>> gpu_room(int most);

}  // namespace troupe::apps
