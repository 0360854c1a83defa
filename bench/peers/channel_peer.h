#pragma once

#include <sys/types.h>

#include <memory>

#include "bench/channel_side.h"
#include "bench/half_round_trip.h"
#include "core/descriptor.h"
#include "core/result.h"

namespace troupe::bench {

/// Another process of this machine, with channels in both directions. Create it while this process
/// has a single thread, because it forks.
class ChannelPeer {
 public:
  static Result<std::unique_ptr<ChannelPeer>> make();
  ~ChannelPeer();
  ChannelPeer(const ChannelPeer&) = delete;
  ChannelPeer& operator=(const ChannelPeer&) = delete;

  /// Starts the threads. Call it after all processes have been created.
  Status start();
  Result<double> measure(Way way, const Size& size) { return echo_->measure(way, size); }

 private:
  ChannelPeer(Descriptor own, Descriptor other);

  Descriptor control_;
  pid_t child_ = -1;
  std::unique_ptr<ChannelEcho> echo_;
};

/// Several channels that send one way at once, driven by `threads` threads in each process.
/// Measures their total bandwidth.
class ChannelStreams {
 public:
  static constexpr std::size_t channels = 4, bytes = 16 * mib;

  static Result<std::unique_ptr<ChannelStreams>> make(std::size_t threads);
  ~ChannelStreams();
  ChannelStreams(const ChannelStreams&) = delete;
  ChannelStreams& operator=(const ChannelStreams&) = delete;

  Status start();
  /// Returns bytes per second, over all channels.
  Result<double> measure();

 private:
  ChannelStreams(std::size_t threads, Descriptor own, Descriptor other);

  struct Senders;

  std::size_t threads_;
  Descriptor control_;
  pid_t child_ = -1;
  std::unique_ptr<Senders> senders_;
};

}  // namespace troupe::bench
