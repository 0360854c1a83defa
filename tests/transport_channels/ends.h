#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/memory/memory_pool.h"
#include "transport/channels/channel.h"
#include "transport/channels/channel_thread.h"
#include "transport/channels/door.h"
#include "transport/channels/local_channel.h"
#include "transport/channels/shm_channel.h"
#include "transport/channels/tcp_channel.h"

namespace troupe::transport {

/// The longest wait of a test before it fails.
constexpr std::chrono::seconds wait_limit{120};

constexpr Epoch this_epoch{{0x1234, 0x5678}, 7};
constexpr Token this_token{0x0123456789abcdef};

/// The parcels that a receiver's listener has received, and a way to wait for them.
class Inbox {
 public:
  /// Called with each parcel and its index on the channel's thread.
  using Look = std::function<void(Parcel, std::uint64_t)>;
  explicit Inbox(Look look = {}) : look_(std::move(look)) {}

  Listener listener();
  OnEnd on_end();

  /// Returns false if it takes longer than the limit.
  bool wait_for(std::uint64_t parcels);
  std::optional<ChannelEnd> wait_for_end();
  std::uint64_t parcels() const;

 private:
  Look look_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t parcels_ = 0;
  std::optional<ChannelEnd> end_;
};

enum class By : std::uint8_t { hand, shm, tcp, tcp_without_checksums, tcp_sealed };
std::string to_string(By by);

/// The keys of two processes that know each other, as each process holds them.
struct KeysOfTwo {
  std::shared_ptr<const ChannelKeys> sender;
  std::shared_ptr<const ChannelKeys> receiver;
};
KeysOfTwo make_keys_of_two();

/// A thread on the heap. ThreadSanitizer confuses a mutex on the stack with earlier mutexes at the
/// same address, and reports lock orders that never happened.
using OwnThread = std::unique_ptr<ChannelThread>;

/// Both ends of a channel in this process, each with its own thread and pool.
struct Ends {
  Ends(By by, Bound bound, Inbox& inbox, Inbox& back);
  ~Ends();

  MemoryPool sender_pool;
  MemoryPool receiver_pool;
  OwnThread sender_thread = std::make_unique<ChannelThread>();
  OwnThread receiver_thread = std::make_unique<ChannelThread>();
  std::unique_ptr<Door> door;
  std::unique_ptr<Receiver> receiver;
  std::unique_ptr<Sender> sender;
};

/// Sends, and retries while the bound does not allow it.
Status send_in_time(Sender& sender, std::span<const std::byte> head,
                    std::span<const Tensor> tensors);

/// Waits until `holds` returns true. Returns false if that takes longer than the limit.
bool comes_true(const std::function<bool()>& holds);

}  // namespace troupe::transport
