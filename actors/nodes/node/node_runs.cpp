#include <algorithm>
#include <utility>

#include "actors/nodes/node/node_work.h"

namespace troupe::actors {

/// Returns null if the attempt that a message is about is over.
NodeAttempt* Node::Work::attempt_of(const transport::Message& message) {
  const auto found = node_attempts_.find(message.run);
  if (found == node_attempts_.end() || found->second.epoch != message.epoch) return nullptr;
  return found->second.is_ending ? nullptr : found->second.node_attempt.get();
}

void Node::Work::end_attempt(const std::string& run) {
  auto& here = node_attempts_.at(run);
  if (std::exchange(here.is_ending, true)) return;
  here.node_attempt->end([this, run] { attempt_ended(run); });
}

void Node::Work::attempt_ended(const std::string& run) {
  auto next = std::move(node_attempts_.at(run).next);
  node_attempts_.erase(run);
  if (next) return begin_attempt(*next);
  if (!node_attempts_.empty()) return;
  for (const auto& then : std::exchange(when_ended_, {})) then();
  if (leaving_) retire("stopped");
}

/// Ends all attempts, and then calls `then`.
void Node::Work::end_attempts(Loop::Task then) {
  if (node_attempts_.empty()) return then();
  when_ended_.push_back(std::move(then));
  for (auto& [run, here] : node_attempts_) {
    here.next.reset();
    end_attempt(run);
  }
}

void Node::Work::prepare(const transport::Message& message) {
  const auto found = node_attempts_.find(message.run);
  if (found == node_attempts_.end()) return begin_attempt(message);
  found->second.next = message;
  end_attempt(message.run);  // The head has given that attempt up.
}

void Node::Work::begin_attempt(const transport::Message& message) {
  const auto refuse = [&](const std::string& why) {
    (void)say_about(message, transport::to_message(PrepareFailed{why}));
  };
  if (leaving_) return refuse("stopping");
  auto order = transport::from_message<Prepare>(message);
  if (!order) return refuse(order.error().text);
  const auto& run = message.run;
  NodeAttemptOrder attempt{
      .open_home = [open = options_.open_run, config = order->config, placement = order->placement,
                    here = order->here] { return open(config, placement, here); },
      .find_store =
          [this, run, of = StatesOf(order->config),
           nodes = order->placement.head()](RunHome& home) {
            node_attempts_.at(run).head_patience = home.head_patience();
            wait_for_head();
            set_patience();
            return state_store_of(run, of, nodes, home);
          },
      .prepare = std::move(*order),
      .attempt = static_cast<int>(message.epoch),
      .epoch = epoch_of(run, message.epoch),
      .interface = options_.interface,
      .carriers = options_.carriers,
      .edges = {},
      .keys = options_.dial.keys,
      .stuck = options_.stuck,
      .tell_head = [this, run, epoch = message.epoch](transport::Message said) -> Status {
        said.run = run;
        said.epoch = epoch;
        return say(std::move(said));
      }};
  auto& here = node_attempts_[run];
  here.epoch = message.epoch;
  here.node_attempt =
      std::make_unique<NodeAttempt>(NodeAttempt::Context{env_, *loop_, network_, system_},
                                    std::move(attempt), [this, run](const Status& ready) {
                                      if (!ready) end_attempt(run);
                                    });
}

/// Returns the states of earlier attempts. Those that another configuration made are dropped.
std::shared_ptr<StateStore> Node::Work::state_store_of(const std::string& run, const StatesOf& of,
                                                       int nodes, RunHome& home) {
  const bool is_kept = home.spec()->copies > 1;
  const auto known = state_stores_.find(run);
  if (known != state_stores_.end()) {
    const auto last = last_equal_step(known->second.of, of);
    if (is_kept && last)
      known->second.state_store->drop_after(*last);
    else
      state_stores_.erase(known);
  }
  if (!is_kept) return nullptr;
  auto& memory = state_stores_[run];
  if (!memory.state_store)
    memory.state_store = std::make_shared<StateStore>(
        executors_.open(OnCores{.threads = 1, .pace = nullptr, .name = "keeping"}));
  memory.of = of;
  memory.nodes = nodes;
  memory.head_patience = home.head_patience();
  memory.until.reset();
  return memory.state_store;
}

void Node::Work::start(const transport::Message& message) {
  auto* const node_attempt = attempt_of(message);
  if (!node_attempt) return;  // The attempt is over.
  const auto order = transport::from_message<Start>(message);
  if (order) return node_attempt->start(*order);
  (void)say_about(message, transport::to_message(PrepareFailed{order.error().text}));
}

void Node::Work::stop(const transport::Message& message) {
  const auto found = node_attempts_.find(message.run);
  if (found != node_attempts_.end()) {
    auto& here = found->second;
    if (here.next && here.next->epoch <= message.epoch) here.next.reset();
    if (here.epoch <= message.epoch) end_attempt(message.run);
  }
  if (leaving_ && node_attempts_.empty()) retire("stopped");
}

}  // namespace troupe::actors
