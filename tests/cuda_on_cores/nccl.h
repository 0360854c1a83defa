// The part of NCCL that transport uses, on the cores, so that links are tested without a GPU,
// within a process or between processes of one machine. It has only non-blocking communicators, and
// is as slow as allowed: every call is in progress until it was polled often enough. It reports the
// errors that NCCL reports: two members with one GPU, a send to oneself without a receive, a lost
// member. Misuse that NCCL does not detect ends the process with a message: a call before the last
// one is complete, work that is put into a stream meanwhile, sizes that differ, an abort that would
// wait for ever.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};
enum ncclDataType_t { ncclInt8 = 0, ncclFloat32 = 7 };
enum ncclRedOp_t { ncclSum = 0 };

using ncclComm_t = struct ncclComm*;
struct ncclUniqueId {
  char internal[128];
};

constexpr int NCCL_CONFIG_UNDEF_INT = -2147483647 - 1;
struct ncclConfig_t {
  unsigned magic = 0;
  int blocking = NCCL_CONFIG_UNDEF_INT;
  int minCTAs = NCCL_CONFIG_UNDEF_INT;
  int maxCTAs = NCCL_CONFIG_UNDEF_INT;
};
#define NCCL_CONFIG_INITIALIZER \
  { .magic = 0xcafebeef }

const char* ncclGetErrorString(ncclResult_t outcome);
const char* ncclGetLastError(ncclComm_t communicator);
ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int members, ncclUniqueId id,
                                    int member, ncclConfig_t* config);
ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state);
ncclResult_t ncclCommAbort(ncclComm_t communicator);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclSend(const void* memory, std::size_t count, ncclDataType_t type, int to,
                      ncclComm_t communicator, cudaStream_t stream);
ncclResult_t ncclRecv(void* memory, std::size_t count, ncclDataType_t type, int from,
                      ncclComm_t communicator, cudaStream_t stream);
ncclResult_t ncclReduce(const void* memory, void* sum, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, int root, ncclComm_t communicator,
                        cudaStream_t stream);

namespace cuda_on_cores {

/// Returns how many were made and not aborted.
std::size_t communicators_left();
/// Returns how many operations communicators were given.
std::uint64_t operations_put();
/// Makes the next new communicator fail at once: it exists, and its first answer is an error.
void let_next_go_wrong();

}  // namespace cuda_on_cores
