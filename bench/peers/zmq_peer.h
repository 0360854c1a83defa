#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "bench/half_round_trip.h"
#include "core/result.h"
#include "storage/files/temporary_folder.h"

namespace troupe::bench {

/// Another process that echoes data over a pair of ZeroMQ ipc sockets: the cost of tensors if they
/// took the path of control messages. Create it while this process has a single thread, because it
/// forks.
class ZmqPeer {
 public:
  static Result<std::unique_ptr<ZmqPeer>> by_ipc();
  ~ZmqPeer();
  ZmqPeer(const ZmqPeer&) = delete;
  ZmqPeer& operator=(const ZmqPeer&) = delete;

  Result<double> measure(const Size& size);

 private:
  class Socket;
  explicit ZmqPeer(storage::TemporaryFolder folder);

  storage::TemporaryFolder folder_;  // Contains the socket's file.
  pid_t child_ = -1;
  std::unique_ptr<Socket> socket_;  // Created by the first measurement, because it starts threads.
};

}  // namespace troupe::bench
