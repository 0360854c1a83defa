#include <algorithm>
#include <chrono>
#include <utility>

#include "actors/nodes/node/node_work.h"

namespace troupe::actors {
namespace {

constexpr auto join_again = std::chrono::milliseconds(100);

}  // namespace

void Node::Work::join() {
  if (!is_dialed_) return;  // It joins when it is connected.
  if (retires_ || comes_anew_) return;
  auto inventory = options_.inventory;
  if (inventory.speed)
    inventory.speed->seconds_ago = std::chrono::duration<double>(env_.now() - started_).count();
  for (const auto& [run, memory] : state_stores_) inventory.kept.push_back({run, memory.nodes});
  auto join = transport::to_message(
      Join{options_.name, std::move(inventory), was_welcome_, term_proof_, options_.life});
  join.incarnation = conversation()->incarnation();
  join.ack = conversation()->ack();
  join.term = term_;
  if (client_->send(join)) return;
  // The connection takes nothing now, or has just ended.
  loop_->after(join_again, [this] {
    if (!is_welcome_) this->join();
  });
}

/// Joins as a new node, since the head has forgotten it. Its states may still be useful.
void Node::Work::come_anew(const std::string& why) {
  if (leaving_) return retire(why);
  options_.say("rejoining: " + why);
  comes_anew_ = true;
  end_attempts([this, why] {
    comes_anew_ = false;
    if (leaving_) return retire(why);
    const auto now = env_.now();
    for (auto& [run, memory] : state_stores_) memory.until = now + memory.head_patience;
    {
      const std::lock_guard lock(mutex_);
      conversation_ = new_conversation();
    }
    was_welcome_ = is_welcome_ = false;
    find_head();
    join();
    set_patience();
  });
}

void Node::Work::heard(Lost& lost) {
  conversation()->pause();
  is_welcome_ = false;
  if (leaving_) return retire("stopped while there was no connection to the head");
  for (auto& [run, memory] : state_stores_)
    if (!has_part_in(run)) memory.until = env_.now() + memory.head_patience;
  if (!has_part()) return;
  options_.say("lost the connection to the head; runs wait for it: " + lost.why);
  lost_at_ = env_.now();
  wait_for_head();
}

/// Stops waiting for a lost head.
void Node::Work::find_head() {
  lost_at_.reset();
  headless_until_.reset();
}

/// Sets how long it waits for a lost head: as long as the most patient run does.
void Node::Work::wait_for_head() {
  if (!lost_at_) return;
  std::optional<std::chrono::nanoseconds> patience;
  for (const auto& [run, here] : node_attempts_)
    if (!here.is_ending && here.head_patience)
      patience = std::max(patience.value_or(*here.head_patience), *here.head_patience);
  if (patience) headless_until_ = *lost_at_ + *patience;
}

void Node::Work::heard(Leave& leave) {
  leaving_ = true;
  if (!has_part() || !is_welcome_) return retire(leave.reason);
  options_.say("leaving: " + leave.reason);
  (void)say(transport::to_message(Leaving{leave.reason}));
}

void Node::Work::retired(const transport::Message& message) {
  const auto order = transport::from_message<Retire>(message);
  come_anew(order ? order->reason : order.error().text);
}

void Node::Work::welcome(const transport::Message& message) {
  const auto welcome = transport::from_message<Welcome>(message);
  if (!welcome) return options_.say(welcome.error().text);
  const auto send = [this](const transport::Message& said) { return client_->send(said); };
  if (auto resumed = conversation()->resume(message.incarnation, message.ack, send); !resumed)
    return retire(resumed.error().text);
  options_.say((was_welcome_ ? "back at " : "joined ") + options_.dial.endpoint + " as " +
               welcome->name);
  term_ = message.term;
  term_proof_ = welcome->term_proof;
  // It is the same life of the head, whose runs may wait long for nodes.
  if (was_welcome_)
    for (auto& [run, memory] : state_stores_) memory.until.reset();
  was_welcome_ = is_welcome_ = true;
  find_head();
}

void Node::Work::reject(const transport::Message& message) {
  if (std::exchange(retires_, true)) return;
  const auto reject = transport::from_message<Rejected>(message);
  end_attempts([this, why = reject ? reject->reason + ": found " + reject->found + ", wanted " +
                                         reject->wanted
                                   : reject.error().text] { options_.rejected(why); });
}

void Node::Work::unfit(const transport::Message& message) {
  const auto unfit = transport::from_message<Unfit>(message);
  options_.say(unfit ? "not used by run " + unfit->run + ": " + unfit->why : unfit.error().text);
}

void Node::Work::dismiss(const transport::Message& message) {
  const auto order = transport::from_message<Dismiss>(message);
  if (!order) return options_.say(order.error().text);
  is_dismissed_ = true;
  Leave leave{"the head ended this node: " + order->reason};
  heard(leave);
}

void Node::Work::retire(const std::string& why) {
  if (std::exchange(retires_, true)) return;
  end_attempts([this, why] {
    state_stores_.clear();
    is_dismissed_ ? options_.dismissed(why) : options_.retired(why);
  });
}

}  // namespace troupe::actors
