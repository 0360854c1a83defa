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

/// Counts the GPUs that this process can use. The error says why there are none.
Result<int> count_gpus();
/// Returns the libraries that use tensor cores: "cuBLASLt 13.1.0, cuDNN 9.19.0". The error names
/// the missing one and what to do. Works without a GPU.
Result<std::string> gpu_libraries();
/// Returns an error if the library is missing with which cuDNN compiles attention. Works without a
/// GPU.
Status gpu_compiler();

/// Returns the error for a run that needs a GPU and cannot have one.
inline Error no_gpu(const std::string& why) {
  return {"train.device: wanted cuda, found no GPU: " + why + "; set train.device = \"cpu\""};
}
/// Prepares the environment for CUDA. Call it before any other function that uses GPUs.
void prepare_for_gpus();

// Functions for a run that uses GPUs.

/// Fails if users of one GPU would block one another, because CUDA has too few hardware queues.
/// Each device on the GPU opens it once, and once more for links to other processes.
Status check_gpu_queues(int times_opened);
/// Returns how many more queues such a GPU can have.
int free_gpu_queues(int times_opened);

/// Opens a GPU. `remark` is called on the thread that enqueues work, with each computation that is
/// slower than expected, and the reason.
Result<std::unique_ptr<Device>> open_gpu(int number,
                                         std::function<void(const std::string&)> remark);
/// Loads the libraries for the tensor cores of an opened GPU, before somebody waits for its work.
Status open_tensor_cores(Device& gpu);
/// Returns the CUDA stream of an opened GPU.
void* queue_of_gpu(Device& gpu);
/// Returns the memory of a GPU. The GPUs `others` of this process can read it too, where the
/// hardware allows that.
Result<std::unique_ptr<MemorySource>> gpu_memory(int number, std::span<const int> others = {});
/// Returns the same memory in a form that other processes can open.
Result<ExportedMemory*> exported_gpu_memory(MemorySource& memory);
/// Returns the free bytes of each of the first `most` GPUs.
Result<std::vector<std::int64_t>> gpu_room(int most);

}  // namespace troupe::apps
