#pragma once

#include <memory>
#include <string>

#include "core/result.h"
#include "transport/links/link.h"

struct CUstream_st;  // What CUDA's cudaStream_t points to.

namespace troupe::transport {

struct NcclOrder {
  int device = 0;                // The GPU's number in this process.
  CUstream_st* queue = nullptr;  // What the device is given: it waits for links that are joined.
  // Blocks of threads that an operation occupies. Few: all links of a device must fit on it at
  // once, beside what it computes.
  int most_blocks = 2;
  // Likewise a sum: a device has few of those, and each is as long as a stage's gradients.
  int most_adding_blocks = 8;
};

/// Links of a GPU by NCCL: each is a communicator with a stream of its own, of two ranks or of as
/// many as add up. By the thread that has the device as its current one, as all calls of what it
/// gives.
Result<std::unique_ptr<Fabric>> open_nccl_fabric(const NcclOrder& order);

/// "nccl 2.28.9": both ends of a link must have the same.
Result<std::string> kind_of_nccl();
/// "0000:17:00.0": which GPU of this machine it is, for all of its processes alike. NCCL makes no
/// link between two processes that have the same one.
Result<std::string> bus_of_gpu(int device);

}  // namespace troupe::transport
