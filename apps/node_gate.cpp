#include "apps/node_gate.h"

#include <utility>

#include "actors/node.h"

namespace troupe::apps {

NodeGate::NodeGate(GateEvents events)
    : events_(std::move(events)),
      nodes_([this](std::uint64_t peer, const transport::Message& message) {
        return server_->send(peer, message);
      }) {}

NodeGate::~NodeGate() { server_.reset(); }

Result<std::unique_ptr<NodeGate>> NodeGate::open(transport::ServerOptions listening,
                                                 GateEvents events) {
  std::unique_ptr<NodeGate> gate(new NodeGate(std::move(events)));
  transport::ServerEvents heard;
  heard.message = [gate = gate.get()](const transport::Peer& peer, transport::Message message) {
    gate->heard(peer, std::move(message));
  };
  heard.gone = [gate = gate.get()](const transport::Peer& peer, transport::Gone,
                                   const std::string& why) { gate->gone(peer, why); };
  heard.refused = [gate = gate.get()](const std::string& address, const std::string& why) {
    gate->events_.say(address + " was refused: " + why);
  };
  auto server = transport::ControlServer::bind(std::move(listening), std::move(heard));
  if (!server) return server.error();
  gate->server_ = std::move(*server);
  gate->opened_.count_down();
  return gate;
}

void NodeGate::heard(const transport::Peer& peer, transport::Message message) {
  opened_.wait();
  if (message.type == actors::Join::type) return join(peer, message);
  const bool is_request = message.run.empty() || message.type.starts_with("run.");
  is_request ? events_.asked(peer, std::move(message))
             : events_.about_run(peer.id, std::move(message));
}

void NodeGate::join(const transport::Peer& peer, const transport::Message& message) {
  auto join = transport::from_message<actors::Join>(message);
  const auto reject = [&](const std::string& reason, const std::string& found,
                          const std::string& wanted) {
    events_.say("a node was rejected: " + reason + ": found " + found + ", wanted " + wanted);
    (void)server_->send(peer.id, transport::to_message(actors::Rejected{reason, found, wanted}));
  };
  if (!join) return reject("its message", join.error().text, "one of this version");
  if (join->inventory.version != TROUPE_VERSION)
    return reject("version", "troupe " + join->inventory.version,
                  "troupe " TROUPE_VERSION ", as the head is");
  const auto node = nodes_.add(peer.id, join->name, std::move(join->inventory));
  (void)server_->send(peer.id, transport::to_message(actors::Welcome{node.name}));
  events_.joined(node);
}

void NodeGate::gone(const transport::Peer& peer, const std::string& why) {
  opened_.wait();
  if (const auto name = nodes_.remove(peer.id); !name.empty()) events_.lost(name, peer.id, why);
}

}  // namespace troupe::apps
