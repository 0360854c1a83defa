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

/// One member's end of a communicator. It goes on only where somebody asks how far it is.
struct ncclComm {
  enum class Phase { meets, connects, settles, settled, failed };

  ncclComm(const std::string& name, const cuda_on_cores::Introduction& own);

  /// So far it has come by itself. To begin, and to connect by its first operation, takes memory of
  /// the device and waits for whatever occupies that.
  void go_on();
  /// What it was given, so that the device does it.
  void put_into_stream();
  void fail(ncclResult_t why, const std::string& text);

  const cuda_on_cores::Introduction own;
  const int device;
  const std::shared_ptr<cuda_on_cores::Membership> membership;
  Phase phase = Phase::meets;
  ncclResult_t failure = ncclSuccess;
  bool is_connected = false;  // As from its first operation on.
  cudaStream_t stream = nullptr;
  std::vector<cuda_on_cores::Part> parts;  // Not in the stream yet.

 private:
  void meet();
  void connect();
  void settle_later();
  bool has_unpaired() const;

  unsigned looks_left_ = 0;  // So often it is asked before it has settled.
};

namespace cuda_on_cores {

/// What all threads of a process have of NCCL, each while it has locked it.
struct NcclWorld {
  std::mutex mutex;
  std::minstd_rand random{1};
  std::set<ncclComm_t> alive;             // Neither gone nor aborted.
  std::map<int, std::thread::id> groups;  // Which thread has one, by device.
  std::string last_error;
  std::uint64_t operations = 0;
  bool next_goes_wrong = false;

  /// Whether a device is by what nobody has met yet.
  bool is_occupied(int device) const;
};
NcclWorld& nccl_world();

}  // namespace cuda_on_cores
