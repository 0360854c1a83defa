#pragma once

#include <functional>
#include <memory>
#include <string>

#include "simulation/machine/wires.h"
#include "transport/network.h"

namespace troupe::simulation {

class SenderDials;

/// The network of a simulated process. The rules of sessions, doors and messages are those of the
/// real network; wires replace its sockets.
///
/// One thing differs from the real one, since nothing can wait here: Sender::close() fails at once
/// if parcels have not arrived.
///
/// After the process has ended, its network and what it made do nothing any more. Destroying them
/// calls no callback, and closes the connections, of which the other ends then learn. So the owner
/// of the process destroys them when it has ended, and the wires last.
class SimulatedNetwork final : public transport::Network {
 public:
  SimulatedNetwork(Wires& wires, MachineId machine, ProcessId process);
  /// Closes what is still open.
  ~SimulatedNetwork() override;

  Result<std::unique_ptr<transport::ControlServer>> listen(transport::ServerOptions options,
                                                           transport::ServerEvents events,
                                                           Loop& loop) override;
  Result<std::unique_ptr<transport::ControlClient>> dial(transport::DialOptions options,
                                                         transport::ClientEvents events,
                                                         Loop& loop) override;
  Result<std::unique_ptr<transport::Publisher>> open_publisher(
      transport::PublisherOptions options) override;
  Result<std::unique_ptr<transport::Subscriber>> subscribe(transport::DialOptions options,
                                                           std::string topic,
                                                           transport::SubscriberEvents events,
                                                           Loop& loop) override;
  Result<std::unique_ptr<transport::Door>> open_door(const std::string& at,
                                                     const transport::DoorOrder& order) override;
  void connect(const std::string& to, transport::Sending sending, Loop& loop,
               std::function<void(Result<std::unique_ptr<transport::Sender>>)> then) override;
  std::string machine_id() override;

 private:
  Wires& wires_;
  Wires::Party who_;
  std::unique_ptr<SenderDials> dials_;
};

}  // namespace troupe::simulation
