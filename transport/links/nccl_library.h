#pragma once

#include <nccl.h>

#include "core/result.h"

namespace troupe::transport {

/// The functions used of NCCL. The library is loaded when the first link is wanted, so that the
/// program starts on machines without it.
struct NcclLibrary {
  int version = 0;  // Encoded like NCCL_VERSION_CODE.
  decltype(&ncclGetErrorString) text_of = nullptr;
  decltype(&ncclGetLastError) last_error = nullptr;
  decltype(&ncclGetUniqueId) unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) init = nullptr;
  decltype(&ncclCommGetAsyncError) state_of = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclGroupStart) begin_group = nullptr;
  decltype(&ncclGroupEnd) end_group = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) receive = nullptr;
  decltype(&ncclReduce) reduce = nullptr;
};

/// Loads NCCL on the first call, from any thread. It is never unloaded. The error says why it is
/// unusable.
Result<const NcclLibrary*> nccl_library();

}  // namespace troupe::transport
