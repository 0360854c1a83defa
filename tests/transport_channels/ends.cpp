#include "ends.h"

#include <thread>

namespace troupe::transport {

Listener Inbox::listener() {
  return {[this](Parcel parcel) {
            if (look_) look_(parcel, parcels());
            const std::lock_guard lock(mutex_);
            ++parcels_;
            changed_.notify_all();
          },
          on_end()};
}

OnEnd Inbox::on_end() {
  return [this](const ChannelEnd& end) {
    const std::lock_guard lock(mutex_);
    end_ = end;
    changed_.notify_all();
  };
}

bool Inbox::wait_for(std::uint64_t parcels) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, wait_limit, [&] { return parcels_ >= parcels || end_; }) &&
         parcels_ >= parcels;
}

std::optional<ChannelEnd> Inbox::wait_for_end() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, wait_limit, [&] { return end_.has_value(); });
  return end_;
}

std::uint64_t Inbox::parcels() const {
  const std::lock_guard lock(mutex_);
  return parcels_;
}

std::string to_string(By by) {
  switch (by) {
    case By::hand:
      return "hand-over";
    case By::shm:
      return "shared memory";
    case By::tcp:
      return "TCP";
    case By::tcp_without_checksums:
      return "TCP without checksums";
    case By::tcp_sealed:
      return "encrypted TCP";
  }
  return "?";
}

KeysOfTwo make_keys_of_two() {
  const auto sender = make_key_pair().value(), receiver = make_key_pair().value();
  return {std::make_shared<ChannelKeys>(ChannelKeys{sender, receiver.public_key}),
          std::make_shared<ChannelKeys>(ChannelKeys{receiver, sender.public_key})};
}

Ends::Ends(By by, Bound bound, Inbox& inbox, Inbox& back) {
  Sending sending{this_epoch, this_token, bound, &sender_pool, back.on_end()};
  Receiving receiving{bound, &receiver_pool, inbox.listener()};
  const DoorOrder order{this_epoch};
  if (by == By::tcp_sealed) {
    const auto keys = make_keys_of_two();
    sending.keys = keys.sender;
    receiving.keys = keys.receiver;
  }
  switch (by) {
    case By::hand: {
      auto channel = make_local_channel(sender_pool, bound, inbox.listener(), back.on_end());
      sender = std::move(channel.sender);
      receiver = std::move(channel.receiver);
      return;
    }
    case By::shm:
      door = open_shm_door(*receiver_thread, order).value();
      receiver = door->expect(this_token, receiving);
      sender = connect_shm(*sender_thread, door->address(), sending).value();
      return;
    case By::tcp:
    case By::tcp_without_checksums:
    case By::tcp_sealed:
      door = open_tcp_door(*receiver_thread, "127.0.0.1:0", order).value();
      receiver = door->expect(this_token, receiving);
      sender = connect_tcp(*sender_thread, door->address(), sending,
                           by == By::tcp ? Checksums::on : Checksums::off)
                   .value();
      return;
  }
}

Ends::~Ends() {
  sender.reset();
  receiver.reset();
}

Status send_in_time(Sender& sender, std::span<const std::byte> head,
                    std::span<const Tensor> tensors) {
  Status sent = Done{};
  comes_true([&] {
    sent = sender.send(head, tensors);
    return sent.ok() || sent.error().text.find("bound") == std::string::npos;
  });
  return sent;
}

bool comes_true(const std::function<bool()>& holds) {
  const auto until = std::chrono::steady_clock::now() + wait_limit;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace troupe::transport
