#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "bench/half_round_trip.h"
#include "core/result.h"
#include "storage/files/temporary_folder.h"

namespace troupe::bench {

/// Another process that sends back what it is told to receive, by a pair of ZeroMQ sockets over
/// ipc: what tensors would cost on the way of the control messages. To be made while this process
/// has one thread.
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

  storage::TemporaryFolder folder_;  // Has the socket's file.
  pid_t child_ = -1;
  std::unique_ptr<Socket> socket_;  // From the first measurement on: it has threads.
};

}  // namespace troupe::bench
