#pragma once

#include <functional>
#include <memory>
#include <string>

#include "transport/channels/channel_thread.h"
#include "transport/network.h"

namespace troupe::transport {

/// The network of a real process: ZeroMQ sockets, TCP connections and shared memory. Channels that
/// it made, and their tensors, must be gone before it is destroyed.
class RealNetwork final : public Network {
 public:
  Result<std::unique_ptr<ControlServer>> listen(ServerOptions options, ServerEvents events,
                                                Loop& loop) override;
  Result<std::unique_ptr<ControlClient>> dial(DialOptions options, ClientEvents events,
                                              Loop& loop) override;
  Result<std::unique_ptr<Publisher>> open_publisher(PublisherOptions options) override;
  Result<std::unique_ptr<Subscriber>> subscribe(DialOptions options, std::string topic,
                                                SubscriberEvents events, Loop& loop) override;
  Result<std::unique_ptr<Door>> open_door(const std::string& at, const DoorOrder& order) override;
  /// Dials on a thread of the loop (Loop::aside), one connection at a time.
  void connect(const std::string& to, Sending sending, Loop& loop,
               std::function<void(Result<std::unique_ptr<Sender>>)> then) override;
  std::string machine_id() override;

 private:
  ChannelThread channels_;
};

}  // namespace troupe::transport
