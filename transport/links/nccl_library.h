#pragma once

#include <nccl.h>

#include "core/result.h"

namespace troupe::transport {

/// What is used of NCCL's library. It is looked for when the first link is wanted, so that the
/// program starts where there is none.
struct NcclLibrary {
  int version = 0;  // As NCCL_VERSION_CODE.
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

/// Looked for once; any thread. The error says why it is of no use. It is never given up.
Result<const NcclLibrary*> nccl_library();

}  // namespace troupe::transport
