#pragma once

#include <nccl.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda_on_cores/nccl_operation.h"
#include "tests/cuda_on_cores/nccl_wires.h"

/// One member's end of a communicator. It makes progress only while it is polled.
struct ncclComm {
  enum class Phase { meets, connects, settles, settled, failed };

  ncclComm(const std::string& name, const cuda_on_cores::Introduction& own);

  /// Makes as much progress as possible. Initialization, and connecting at the first operation,
  /// allocate device memory and so wait for everything that occupies the device.
  void go_on();
  /// Puts the submitted parts into the stream, so that the device does them.
  void put_into_stream();
  void fail(ncclResult_t why, const std::string& text);

  const cuda_on_cores::Introduction own;
  const int device;
  const std::shared_ptr<cuda_on_cores::Membership> membership;
  Phase phase = Phase::meets;
  ncclResult_t failure = ncclSuccess;
  bool is_connected = false;  // Connected at its first operation.
  cudaStream_t stream = nullptr;
  std::vector<cuda_on_cores::Part> parts;  // Parts that are not in the stream yet.

 private:
  void meet();
  void connect();
  void settle_later();
  bool has_unpaired() const;

  unsigned looks_left_ = 0;  // How often it is still polled before it has settled.
};

namespace cuda_on_cores {

/// The NCCL state of a process, guarded by its mutex.
struct NcclWorld {
  std::mutex mutex;
  std::minstd_rand random{1};
  std::set<ncclComm_t> alive;             // Communicators that have neither ended nor been aborted.
  std::map<int, std::thread::id> groups;  // The thread that has a group open, by device.
  std::string last_error;
  std::uint64_t operations = 0;
  bool next_goes_wrong = false;

  /// Returns whether the device is occupied by an operation without a counterpart.
  bool is_occupied(int device) const;
};
NcclWorld& nccl_world();

}  // namespace cuda_on_cores
