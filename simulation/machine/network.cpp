#include "simulation/machine/network.h"

#include <utility>

#include "simulation/machine/sockets.h"

namespace troupe::simulation {

SimulatedNetwork::SimulatedNetwork(Wires& wires, MachineId machine, ProcessId process)
    : wires_(wires), who_{machine, process}, dials_(std::make_unique<SenderDials>(wires_, who_)) {}

SimulatedNetwork::~SimulatedNetwork() { wires_.close_all(who_.process); }

Result<std::unique_ptr<transport::ControlServer>> SimulatedNetwork::listen(
    transport::ServerOptions options, transport::ServerEvents events, Loop& loop) {
  return make_server(wires_, who_, std::move(options), std::move(events), loop);
}

Result<std::unique_ptr<transport::ControlClient>> SimulatedNetwork::dial(
    transport::DialOptions options, transport::ClientEvents events, Loop& loop) {
  return make_client(wires_, who_, std::move(options), std::move(events), loop);
}

Result<std::unique_ptr<transport::Publisher>> SimulatedNetwork::open_publisher(
    transport::PublisherOptions options) {
  return make_publisher(wires_, who_, std::move(options));
}

Result<std::unique_ptr<transport::Subscriber>> SimulatedNetwork::subscribe(
    transport::DialOptions options, std::string topic, transport::SubscriberEvents events,
    Loop& loop) {
  return make_subscriber(wires_, who_, std::move(options), std::move(topic), std::move(events),
                         loop);
}

Result<std::unique_ptr<transport::Door>> SimulatedNetwork::open_door(
    const std::string& at, const transport::DoorOrder& order) {
  return make_door(wires_, who_, at, order);
}

void SimulatedNetwork::connect(
    const std::string& to, transport::Sending sending, Loop& loop,
    std::function<void(Result<std::unique_ptr<transport::Sender>>)> then) {
  dials_->connect(to, std::move(sending), loop, std::move(then));
}

std::string SimulatedNetwork::machine_id() { return "simulated " + wires_.address(who_.machine); }

}  // namespace troupe::simulation
