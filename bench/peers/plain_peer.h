#pragma once

#include <sys/types.h>

#include <memory>

#include "bench/half_round_trip.h"
#include "core/descriptor.h"
#include "core/result.h"

namespace troupe::bench {

/// Another process that echoes data in a blocking loop: the speed of a bare socket. Create it while
/// this process has a single thread, because it forks.
class PlainPeer {
 public:
  static Result<std::unique_ptr<PlainPeer>> by_tcp();
  static Result<std::unique_ptr<PlainPeer>> by_unix_socket();
  ~PlainPeer();
  PlainPeer(const PlainPeer&) = delete;
  PlainPeer& operator=(const PlainPeer&) = delete;

  Result<double> measure(const Size& size);

 private:
  PlainPeer(Descriptor own, Descriptor other);

  Descriptor socket_;
  pid_t child_ = -1;
};

}  // namespace troupe::bench
