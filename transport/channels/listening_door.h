#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/descriptor.h"
#include "core/descriptor_limit.h"
#include "transport/channels/channel_thread.h"
#include "transport/channels/door.h"
#include "transport/channels/frame.h"

namespace troupe::transport {

/// A sender that asks to be admitted at a door.
struct Caller {
  Hello hello;
  KeyOffer offer;  // Valid if the hello asks for encryption.
  Descriptor connection;
  Descriptor file;
};

/// A receiver whose sender may connect. Its members are called on the channel's thread.
class Guest {
 public:
  /// Checks everything but the token. If it returns `welcome`, it puts what follows the answer into
  /// `greeting`, and arrive() is called next.
  virtual Verdict judge(const Caller& caller, std::vector<std::byte>& greeting) = 0;
  /// Takes over a sender that has received its welcome.
  virtual void arrive(Caller caller) = 0;

 protected:
  ~Guest() = default;
};

/// The receivers that wait for senders. The door and its receivers share it, since any may go
/// first.
class GuestList {
 public:
  void expect(Token token, Guest& guest);
  /// When it returns, the guest is not called any more.
  void forget(Guest& guest);
  /// Finds the guest that has the caller's token and lets it judge. A welcome uses the token up.
  Verdict admit(Caller& caller);

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, Guest*> guests_;
};

/// Makes a carrier's receiver and registers it with the guest list.
using MakeReceiver = std::unique_ptr<Receiver> (*)(ChannelThread& thread,
                                                   std::shared_ptr<GuestList> guests, Token token,
                                                   const Epoch& epoch, Receiving receiving);
template <class T>
std::unique_ptr<Receiver> make_receiver(ChannelThread& thread, std::shared_ptr<GuestList> guests,
                                        Token token, const Epoch& epoch, Receiving receiving) {
  return std::make_unique<T>(thread, std::move(guests), token, epoch, std::move(receiving));
}

/// A door with a listening socket.
class ListeningDoor final : public Door, private ChannelSource {
 public:
  ListeningDoor(ChannelThread& thread, Descriptor socket, std::string address, Carrier carrier,
                const DoorOrder& order, MakeReceiver make_receiver);
  ~ListeningDoor() override;

  std::string address() const override { return address_; }
  std::unique_ptr<Receiver> expect(Token token, Receiving receiving) override;
  DoorCounters counters() const override;

 private:
  class Knock;

  void on_ready(std::uint32_t events) override;
  void hear(Knock& knock);
  void dismiss(Knock& knock);
  void count(std::uint64_t DoorCounters::*what);

  ChannelThread& thread_;
  Descriptor socket_;
  SpareDescriptor spare_;
  std::string address_;
  Carrier carrier_;
  DoorOrder order_;
  MakeReceiver make_receiver_;
  std::shared_ptr<GuestList> guests_ = std::make_shared<GuestList>();
  std::list<std::unique_ptr<Knock>> knocks_;
  mutable std::mutex mutex_;  // Guards the counters.
  DoorCounters counters_;
  ChannelThread::Place place_{};
};

}  // namespace troupe::transport
