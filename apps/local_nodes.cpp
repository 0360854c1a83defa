#include "apps/local_nodes.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace troupe::apps {

Result<std::unique_ptr<LocalNodes>> LocalNodes::start(int count, actors::RemoteOrder order) {
  auto local = std::make_unique<LocalNodes>();
  GateEvents events;
  // Nodes are started, and so heard, only once there is a casting.
  events.lost = [local = local.get()](const std::string&, std::uint64_t peer,
                                      const std::string& why) { local->casting_->lost(peer, why); };
  events.about_run = [local = local.get()](std::uint64_t peer, transport::Message message) {
    local->casting_->heard(peer, std::move(message));
  };
  transport::ServerOptions listening;
  listening.endpoint = "tcp://127.0.0.1:0";
  auto gate = NodeGate::open(std::move(listening), std::move(events));
  if (!gate) return gate.error();
  local->gate_ = std::move(*gate);
  const std::string carrier = order.carriers == actors::Carriers::tcp ? "tcp" : "auto";
  order.fewest = order.most = count;
  local->casting_ = std::make_unique<actors::RemoteCasting>(
      local->gate_->nodes(), local->gate_->channels(), std::move(order));
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  for (int i = 0; i < count; ++i)
    if (auto started =
            local->processes_.start(local->gate_->endpoint(), "node-" + std::to_string(i),
                                    std::max(1, cores / count), carrier);
        !started)
      return started.error();
  return local;
}

}  // namespace troupe::apps
