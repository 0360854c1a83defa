#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/result.h"
#include "transport/links/link.h"

struct CUstream_st;  // CUDA's cudaStream_t is a pointer to it.

namespace troupe::transport {

struct NcclOrder {
  int device = 0;                // The GPU's number in this process.
  CUstream_st* queue = nullptr;  // The queue of the device's work, which waits for joined links.
  // Thread blocks of one operation. Keep it low: all links of a device must fit on it at once,
  // beside its computation.
  int most_blocks = 2;
  // The same for a sum: a device has few summing links, each as large as a stage's gradients.
  int most_adding_blocks = 8;
  // CUDA's connections that no other queue of the device uses.
  int free_queues = 32;
  // Called if links need more queues than that. Runs on the thread that forms links.
  std::function<void(const std::string&)> remark = [](const std::string&) {};
};

/// Opens links of a GPU by NCCL. Each link is a communicator with its own stream and two ranks, or
/// more if it sums. The calling thread must have the GPU as its current device, for this call and
/// all later ones.
Result<std::unique_ptr<Fabric>> open_nccl_fabric(const NcclOrder& order);

/// Returns the kind of these links, like "nccl 2.28.9". Both ends must have the same kind.
Result<std::string> kind_of_nccl();
/// Returns the bus id of a GPU, like "0000:17:00.0", which is equal in all processes of a machine.
/// NCCL makes no link between two processes that use the same GPU.
Result<std::string> bus_of_gpu(int device);

}  // namespace troupe::transport
