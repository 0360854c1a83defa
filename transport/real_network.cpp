#include "transport/real_network.h"

#include <utility>

#include "transport/channels/shm_channel.h"
#include "transport/channels/tcp_channel.h"
#include "transport/control/zmq_sockets.h"
#include "transport/machine_id.h"

namespace troupe::transport {

Result<std::unique_ptr<ControlServer>> RealNetwork::listen(ServerOptions options,
                                                           ServerEvents events, Loop& loop) {
  return bind_server(std::move(options), std::move(events), loop);
}

Result<std::unique_ptr<ControlClient>> RealNetwork::dial(DialOptions options, ClientEvents events,
                                                         Loop& loop) {
  return dial_server(std::move(options), std::move(events), loop);
}

Result<std::unique_ptr<Publisher>> RealNetwork::open_publisher(PublisherOptions options) {
  return bind_publisher(std::move(options));
}

Result<std::unique_ptr<Subscriber>> RealNetwork::subscribe(DialOptions options, std::string topic,
                                                           SubscriberEvents events, Loop& loop) {
  return dial_publisher(std::move(options), std::move(topic), std::move(events), loop);
}

Result<std::unique_ptr<Door>> RealNetwork::open_door(const std::string& at,
                                                     const DoorOrder& order) {
  return at == shared_memory ? open_shm_door(channels_, order)
                             : open_tcp_door(channels_, at, order);
}

void RealNetwork::connect(const std::string& to, Sending sending, Loop& loop,
                          std::function<void(Result<std::unique_ptr<Sender>>)> then) {
  struct Dial {
    std::string to;
    Sending sending;
    std::function<void(Result<std::unique_ptr<Sender>>)> then;
    Result<std::unique_ptr<Sender>> sender = Error{"the loop has ended"};
  };
  const auto dial = std::make_shared<Dial>(Dial{to, std::move(sending), std::move(then)});
  loop.aside(
      "dialing",
      [this, dial] {
        dial->sender = dial->to.starts_with(shared_memory)
                           ? connect_shm(channels_, dial->to.substr(shared_memory.size()),
                                         std::move(dial->sending))
                           : connect_tcp(channels_, dial->to, std::move(dial->sending));
      },
      [dial] { dial->then(std::move(dial->sender)); });
}

std::string RealNetwork::machine_id() { return this_machine_id(); }

}  // namespace troupe::transport
