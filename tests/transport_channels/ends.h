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

/// How long a test waits for what is to come before it fails.
constexpr std::chrono::seconds wait_limit{120};

constexpr Epoch this_epoch{{0x1234, 0x5678}, 7};
constexpr Token this_token{0x0123456789abcdef};

/// What a receiver's listener has had, and a way to wait for it.
class Inbox {
 public:
  /// Called with each parcel and its place in the order, on the channel's thread.
  using Look = std::function<void(Parcel, std::uint64_t)>;
  explicit Inbox(Look look = {}) : look_(std::move(look)) {}

  Listener listener();
  OnEnd on_end();

  /// False where it takes longer than a test waits.
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

/// The keys of two processes that know each other, as each of them has them.
struct KeysOfTwo {
  std::shared_ptr<const ChannelKeys> sender;
  std::shared_ptr<const ChannelKeys> receiver;
};
KeysOfTwo make_keys_of_two();

/// On the heap: where a mutex lies on the stack, ThreadSanitizer takes it for those that lay there
/// before, and sees orders of locking that never were.
using OwnThread = std::unique_ptr<ChannelThread>;

/// Both ends of a channel in this process, each with a thread and a pool of its own.
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

/// Sends where the bound allows it, and tries again where it does not yet.
Status send_in_time(Sender& sender, std::span<const std::byte> head,
                    std::span<const Tensor> tensors);

/// True as soon as `holds` is; false where it takes longer than a test waits.
bool comes_true(const std::function<bool()>& holds);

}  // namespace troupe::transport
