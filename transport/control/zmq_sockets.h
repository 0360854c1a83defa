#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/env.h"
#include "core/result.h"
#include "transport/control/control_socket.h"
#include "transport/control/publisher.h"

/// The sockets of the control plane over ZeroMQ. Each has a thread that does all its work. Only
/// real_network.cpp and tests of these sockets include this header; all others use
/// transport/network.h, which also says how the callbacks are called.
namespace troupe::transport {

/// A ROUTER socket.
Result<std::unique_ptr<ControlServer>> bind_server(ServerOptions options, ServerEvents events,
                                                   Loop& loop);
/// A DEALER socket.
Result<std::unique_ptr<ControlClient>> dial_server(DialOptions options, ClientEvents events,
                                                   Loop& loop);

/// The callbacks of a publisher. They run one at a time on its thread. Any may be empty.
struct PublisherEvents {
  /// Reports each subscription, with its prefix.
  std::function<void(const std::string& topic)> subscribed;
  std::function<void(const std::string& address, const std::string& why)> refused;
};

/// An XPUB socket.
Result<std::unique_ptr<Publisher>> bind_publisher(PublisherOptions options,
                                                  PublisherEvents events = {});
/// A SUB socket.
Result<std::unique_ptr<Subscriber>> dial_publisher(DialOptions options, std::string topic,
                                                   SubscriberEvents events, Loop& loop);

}  // namespace troupe::transport
