#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "bench/half_round_trip.h"
#include "core/memory/memory_pool.h"
#include "core/memory/tensor.h"
#include "core/result.h"
#include "transport/channels/channel.h"
#include "transport/channels/channel_thread.h"
#include "transport/channels/door.h"

namespace troupe::bench {

/// How a tensor travels.
enum class Way : std::uint8_t { in_place, one_copy, tcp, tcp_without_checksums, tcp_sealed };

/// The parameters on which the two sides agree before they connect.
struct Meeting {
  int control = -1;                     // Carries addresses between the sides.
  std::string interface = "127.0.0.1";  // The address of this side's channels.
  std::uint64_t secret = 0;             // Shared by both sides.
  enum class Seat : std::uint8_t { asks, answers } seat = Seat::asks;
  enum class Place : std::uint8_t { one_machine, two_machines } place = Place::one_machine;
};

/// One of two processes with channels in both directions: TCP, and shared memory if both are on one
/// machine.
class ChannelSide {
 public:
  using Listener = std::function<void(const transport::Parcel&)>;
  static Result<std::unique_ptr<ChannelSide>> meet(const Meeting& meeting, const Listener& listener,
                                                   const transport::OnEnd& on_end);
  ~ChannelSide();
  ChannelSide(const ChannelSide&) = delete;
  ChannelSide& operator=(const ChannelSide&) = delete;

  /// Sends a tensor of `bytes` bytes. The parcel's head names the way.
  Status send(Way way, std::size_t bytes);

 private:
  struct Link {
    std::unique_ptr<transport::Receiver> receiver;
    std::unique_ptr<transport::Sender> sender;
  };

  ChannelSide() = default;

  MemoryPool pool_;
  std::map<std::size_t, Tensor> made_;
  transport::ChannelThread thread_;
  std::unique_ptr<transport::Door> tcp_door_;
  std::unique_ptr<transport::Door> shm_door_;
  std::array<Link, 4> links_;  // Shared memory, TCP, TCP without checksums, encrypted TCP.
};

/// Runs the answering side: sends each tensor back the way it came, until the other side hangs up.
Status echo_channels(const Meeting& meeting);

/// The asking side, which measures.
class ChannelEcho {
 public:
  static Result<std::unique_ptr<ChannelEcho>> meet(const Meeting& meeting);

  Result<double> measure(Way way, const Size& size);

 private:
  void came_back();
  void finish(Result<double> seconds);

  Way way_ = Way::tcp;
  std::size_t bytes_ = 0;
  int turns_ = 0;
  int turn_ = 0;
  std::chrono::steady_clock::time_point start_;
  std::mutex mutex_;  // Guards done_, and members that a new measurement sets.
  std::optional<std::promise<Result<double>>> done_;
  std::unique_ptr<ChannelSide> side_;  // Last, because its thread uses the other members.
};

}  // namespace troupe::bench
