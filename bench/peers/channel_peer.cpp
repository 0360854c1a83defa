#include "bench/peers/channel_peer.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "transport/channels/channel_thread.h"
#include "transport/channels/socket.h"
#include "transport/channels/tcp_channel.h"

namespace troupe::bench {
namespace {

using namespace transport;

constexpr std::uint64_t secret = 1;  // Any number: no other process connects.
constexpr int parcels = 8;           // Parcels of each channel in a measurement.
constexpr Bound peer_bound{600 * mib, 64};
using Address = std::array<char, 64>;

/// Returns both ends of a control socket, for this process and a child.
Result<std::array<Descriptor, 2>> control_sockets() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return system_error("no pair of sockets");
  return std::array<Descriptor, 2>{Descriptor(ends[0]), Descriptor(ends[1])};
}

/// Runs the receiving process of ChannelStreams. Writes a byte whenever all parcels have arrived.
Status receive(int control, std::size_t threads) {
  MemoryPool pool;
  std::vector<std::unique_ptr<ChannelThread>> all;
  std::vector<std::unique_ptr<Door>> doors;
  for (std::size_t i = 0; i < threads; ++i) all.push_back(std::make_unique<ChannelThread>());
  std::atomic<int> came{0};
  const auto count = [&](const Parcel&) {
    if (++came % (parcels * static_cast<int>(ChannelStreams::channels)) == 0)
      (void)write_all(control, "", 1);
  };
  // Each thread has its own door, because a door gives connections to its own thread.
  std::vector<std::unique_ptr<Receiver>> receivers;
  for (std::size_t i = 0; i < ChannelStreams::channels; ++i) {
    if (i < threads) {
      auto door = open_tcp_door(*all[i], "127.0.0.1:0", {{{secret, 0}, 0}});
      if (!door) return door.error();
      doors.push_back(std::move(*door));
    }
    receivers.push_back(doors[i % threads]->expect(Token{i}, {peer_bound, &pool, {count, {}}}));
  }
  for (std::size_t i = 0; i < ChannelStreams::channels; ++i) {
    Address address{};
    const auto text = doors[i % threads]->address();
    std::memcpy(address.data(), text.data(), text.size());
    if (!write_all(control, address.data(), address.size())) break;
  }
  char byte = 0;
  while (read(control, &byte, 1) > 0) continue;
  return Done{};
}

}  // namespace

ChannelPeer::ChannelPeer(Descriptor own, Descriptor other)
    : control_(std::move(own)), child_(fork()) {
  if (child_ != 0) return;
  control_ = Descriptor();
  stay_on(1);
  const auto done =
      echo_channels({.control = other.number(), .secret = secret, .seat = Meeting::Seat::answers});
  _exit(done ? 0 : 1);
}

ChannelPeer::~ChannelPeer() {
  echo_.reset();
  hang_up(control_);
  if (child_ > 0) waitpid(child_, nullptr, 0);
}

Result<std::unique_ptr<ChannelPeer>> ChannelPeer::make() {
  auto ends = control_sockets();
  if (!ends) return ends.error();
  return std::unique_ptr<ChannelPeer>(
      new ChannelPeer(std::move((*ends)[0]), std::move((*ends)[1])));
}

Status ChannelPeer::start() {
  auto echo = ChannelEcho::meet({.control = control_.number(), .secret = secret});
  if (!echo) return echo.error();
  echo_ = std::move(*echo);
  return Done{};
}

struct ChannelStreams::Senders {
  MemoryPool pool;
  Tensor tensor;
  std::vector<std::unique_ptr<ChannelThread>> threads;
  std::vector<std::unique_ptr<Sender>> senders;
};

ChannelStreams::ChannelStreams(std::size_t threads, Descriptor own, Descriptor other)
    : threads_(threads), control_(std::move(own)), child_(fork()) {
  if (child_ != 0) return;
  control_ = Descriptor();
  stay_on(1);
  _exit(receive(other.number(), threads) ? 0 : 1);
}

ChannelStreams::~ChannelStreams() {
  senders_.reset();
  hang_up(control_);
  if (child_ > 0) waitpid(child_, nullptr, 0);
}

Result<std::unique_ptr<ChannelStreams>> ChannelStreams::make(std::size_t threads) {
  auto ends = control_sockets();
  if (!ends) return ends.error();
  return std::unique_ptr<ChannelStreams>(
      new ChannelStreams(threads, std::move((*ends)[0]), std::move((*ends)[1])));
}

Status ChannelStreams::start() {
  senders_ = std::make_unique<Senders>();
  for (std::size_t i = 0; i < threads_; ++i)
    senders_->threads.push_back(std::make_unique<ChannelThread>());
  for (std::size_t i = 0; i < channels; ++i) {
    Address address{};
    if (!read_all(control_.number(), address.data(), address.size()))
      return Error{"the process that receives has ended"};
    auto sender = connect_tcp(*senders_->threads[i % threads_], address.data(),
                              {{{secret, 0}, 0}, Token{i}, peer_bound, &senders_->pool, {}});
    if (!sender) return sender.error();
    senders_->senders.push_back(std::move(*sender));
  }
  senders_->tensor = Tensor::make(senders_->pool, {static_cast<std::int64_t>(bytes)}, DType::u8);
  std::memset(senders_->tensor.raw(), 1, bytes);
  return Done{};
}

Result<double> ChannelStreams::measure() {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < parcels; ++i)
    for (auto& sender : senders_->senders)
      if (auto sent = sender->send({}, {&senders_->tensor, 1}); !sent) return sent.error();
  char done = 0;
  if (!read_all(control_.number(), &done, 1)) return Error{"the process that receives has ended"};
  return channels * parcels * bytes / seconds_since(start);
}

}  // namespace troupe::bench
