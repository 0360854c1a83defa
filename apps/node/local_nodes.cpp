#include "apps/node/local_nodes.h"

#include <algorithm>
#include <utility>

#include "apps/node/node_arguments.h"

namespace troupe::apps {

LocalNodes::~LocalNodes() {
  end_and_wait(processes_);
  processes_.clear();
  if (player_host_) player_host_->end();
}

Result<std::unique_ptr<LocalNodes>> LocalNodes::start(const Context& context, const Counts& counts,
                                                      actors::RemoteOrder order,
                                                      const NodePatience& patience) {
  auto& [env, network, processes] = context;
  auto local = std::make_unique<LocalNodes>();
  GateOptions options;
  options.listening.endpoint = "tcp://127.0.0.1:0";
  options.patience = patience;
  GateEvents events;
  events.joined = [local = local.get()](const actors::NodeHere&) {
    local->player_host_->arrived();
  };
  events.lost = [local = local.get()](const actors::NodeHere& node, const actors::NodeLoss& loss) {
    local->player_host_->lost(node, loss);
  };
  events.leaving = [local = local.get()](const actors::NodeHere& node, const std::string& why) {
    local->player_host_->lost(node, {.why = "is leaving: " + why});
  };
  events.about_run = [local = local.get()](std::uint64_t node, transport::Message message) {
    local->player_host_->heard(node, std::move(message));
  };
  auto gate = NodeGate::open(env, network, std::move(options), std::move(events));
  if (!gate) return gate.error();
  local->gate_ = std::move(*gate);
  NodeArguments arguments;
  arguments.head = local->gate_->endpoint();
  arguments.carrier = order.carriers == actors::Carriers::tcp ? "tcp" : "auto";
  order.fewest = order.most = counts.nodes;
  local->player_host_ = std::make_unique<actors::RemotePlayerHost>(
      env, network, local->gate_->nodes(), std::move(order), actors::DecisionLog{});
  local->gate_->start();
  arguments.cores = std::max(1, counts.cores / counts.nodes);
  for (int i = 0; i < counts.nodes; ++i) {
    arguments.name = "node-" + std::to_string(i);
    arguments.first_gpu = i * counts.devices;
    KeepOptions kept;
    const auto life = std::make_shared<std::int64_t>();  // Used only by the keeper's loop.
    kept.arguments = [&env = env, arguments, life] {
      *life = new_life(env);
      auto words = arguments.words();
      words.emplace_back("-q");
      return words;
    };
    kept.environment = [life] { return environment_of(*life); };
    kept.ended = [gate = local->gate_.get(), life](const ProcessEnd& end) {
      gate->process_ended(notice_of(*life, end));
      return true;
    };
    local->processes_.push_back(std::make_unique<KeptProcess>(env, processes, std::move(kept)));
  }
  return local;
}

}  // namespace troupe::apps
