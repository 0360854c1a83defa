#include "simulation/node.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace troupe::simulation {
namespace {

constexpr Duration beat_every = std::chrono::milliseconds(100);
constexpr Duration dial_every = std::chrono::milliseconds(500);
constexpr std::string_view contribution_type = "peer.contribution";
constexpr std::string_view decision_type = "peer.decision";

/// Convert between 64 bits and the signed integers of messages.
std::int64_t as_signed(std::uint64_t bits) { return static_cast<std::int64_t>(bits); }
std::uint64_t as_bits(std::int64_t number) { return static_cast<std::uint64_t>(number); }

template <class... Orders>
std::optional<recon::HeadSays> order_in(const transport::Message& message,
                                        const std::variant<Orders...>*) {
  std::optional<recon::HeadSays> found;
  const auto try_one = [&]<class Order>(const Order*) {
    if (found || message.type != Order::type) return;
    if (auto read = transport::from_message<Order>(message)) found = std::move(*read);
  };
  (try_one(static_cast<const Orders*>(nullptr)), ...);
  return found;
}

}  // namespace

Node::Node(World& world, Life life, std::string name) : world_(world), name_(std::move(name)) {
  member_.life = life;
  world_.network.open(life, [this](Network::Address from, const transport::Message& message) {
    receive(from, message);
  });
  dial();
  beat();
}

Node::~Node() {
  *alive_ = false;
  world_.network.close(life());
}

/// Runs `what` after `time`, not during a pause, and not at all if the process has ended.
void Node::later(Duration time, std::function<void()> what) {
  world_.clock.after(time, [this, alive = alive_, what = std::move(what)] {
    if (!*alive || has_left_) return;
    if (world_.clock.now() < paused_until_) return later(paused_until_ - world_.clock.now(), what);
    what();
  });
}

void Node::pause(Duration time) {
  paused_until_ = std::max(paused_until_, world_.clock.now() + time);
}

Duration Node::slowed(Duration time) const {
  return std::chrono::duration_cast<Duration>(time * slowness_);
}

void Node::beat() {
  later(world_.beats ? beat_every : dial_every, [this] { beat(); });
  if (head_ != world_.head) dial();
  if (!world_.beats) return;
  transport::Message beat;
  beat.type = "node.heartbeat";
  tell_head(std::move(beat));
}

void Node::dial() {
  head_ = world_.head;
  if (head_ == 0) return;
  tell_head(recon::hello(member_, name_));
}

void Node::give_notice(Duration left) { tell_head(recon::Notice{life(), left}); }

/// Delivers messages in order of arrival, even across several pauses.
void Node::receive(Network::Address from, const transport::Message& message) {
  if (world_.clock.now() >= paused_until_ && unheard_.empty()) return hear(from, message);
  unheard_.emplace_back(from, message);
  if (unheard_.size() > 1) return;
  later(paused_until_ - world_.clock.now(), [this, alive = alive_] {
    for (const auto& [sender, one] : std::exchange(unheard_, {}))
      if (*alive) hear(sender, one);
  });
}

void Node::hear(Network::Address from, const transport::Message& message) {
  if (has_left_) return;
  if (message.type == contribution_type) return add(message);
  if (message.type == decision_type) return apply(message);
  speaker_ = from;
  obey(message);
}

void Node::obey(const transport::Message& message) {
  auto order = order_in(message, static_cast<const recon::HeadSays*>(nullptr));
  if (!order) return world_.monitor.violated("a node cannot read " + message.type);
  if (world_.bug == Bug::old_epochs_heard)
    std::visit(
        [&](auto& one) {
          if constexpr (requires { one.plan; })
            one.epoch = std::max(one.epoch, member_.epoch + 1);
          else if constexpr (requires { one.epoch; })
            one.epoch = member_.epoch;
        },
        *order);
  if (const auto* prepare = std::get_if<recon::Prepare>(&*order))
    world_.monitor.told(prepare->epoch, prepare->plan.members);
  const auto answer = recon::heard(member_, message.term, *order);
  // An order of an earlier head or attempt must change nothing.
  const bool is_old = message.term < member_.term || std::visit(
                                                         [this](const auto& one) {
                                                           if constexpr (requires { one.epoch; })
                                                             return one.epoch < member_.epoch;
                                                           return false;
                                                         },
                                                         *order);
  const bool is_deaf =
      answer.deeds.empty() || std::holds_alternative<recon::TellDeposed>(answer.deeds.front());
  if (is_old && (!is_deaf || answer.member.epoch != member_.epoch ||
                 answer.member.doing != member_.doing || answer.member.plan != member_.plan))
    world_.monitor.violated("an order of the past was obeyed: " + message.type);
  act(answer);
}

void Node::act(const recon::MemberAnswer& answer) {
  member_ = answer.member;
  world_.monitor.follows(life(), member_.term, member_.epoch);
  for (const auto& deed : answer.deeds) std::visit([this](const auto& one) { on(one); }, deed);
}

void Node::on(const recon::StopWork&) {
  if (world_.bug == Bug::work_not_stopped) return;
  ++work_;
  holds_ = asked_to_hold_ = false;
  pending_.reset();
  go_on_until_ = -1;
  contributions_.clear();
  told_.clear();
}

void Node::on(const recon::MakeReady& make) {
  const bool fails = prepares_to_fail_ > 0;
  if (fails) --prepares_to_fail_;
  later(slowed(world_.costs.prepare), [this, make, fails] {
    act(recon::is_ready(member_, make, fails ? Status(Error{"no room"}) : Status(Done{})));
  });
}

void Node::on(const recon::PlayOn&) {
  world_.copies.begin(member_.epoch, member_.decided);
  ++work_;
  go_on_until_ = member_.decided;
  compute();
  if (is_first()) decide();
}

void Node::on(const recon::Tell& tell) {
  std::visit(
      [this](const auto& said) {
        if constexpr (requires { said.type; }) tell_head(said);
      },
      tell.event);
}

void Node::on(const recon::TellDeposed& deposed) {
  transport::Message message;
  message.type = "deposed";
  message.body.set("term", static_cast<std::int64_t>(deposed.term));
  message.incarnation = as_bits(life());
  if (speaker_ != 0) world_.network.send(life(), speaker_, message);
}

/// A new head may have missed the newest steps, so the node repeats them.
void Node::on(const recon::TellAgain&) {
  for (const auto& message : told_) tell_head(message);
  if (holds_) tell_save_point();
}

// Steps.

void Node::compute() {
  if (member_.decided >= world_.steps) return;
  holds_ = false;
  const Duration beside = std::exchange(copying_, {});
  later(slowed(world_.costs.step(member_.plan) + beside), [this, work = work_] {
    if (work == work_ && plays()) contribute();
  });
}

void Node::contribute() {
  if (std::exchange(fails_next_step_, false) || member_.decided + 1 == poisoned_step_) {
    tell_head(recon::StepFailed{life(), member_.epoch, member_.decided + 1, "it was made to"});
    // If no head hears this, the next head finds out that the node does not play.
    member_.doing = recon::Member::Doing::nothing;
    return;
  }
  const bool is_off = world_.bug == Bug::position_off_by_one && member_.line > 0;
  const auto samples = world_.model.read(member_.decided + (is_off ? 1 : 0));
  transport::Message message;
  message.type = contribution_type;
  message.body.set("step", member_.decided + 1);
  Value::List gradients;
  for (const auto& [unit, weight] : weights_) {
    Value one;
    one.set("unit", unit);
    one.set("gradient", as_signed(TinyModel::gradient(weight, samples)));
    gradients.push_back(std::move(one));
  }
  message.body.set("gradients", std::move(gradients));
  tell_peer(member_.plan.members[0], std::move(message));
}

/// Stores a contribution, which waits if this node does not know yet that the attempt is active.
void Node::add(const transport::Message& message) {
  const bool is_now = message.epoch == member_.epoch || world_.bug == Bug::old_contributions_heard;
  const auto step = integer_in(message.body, "step");
  if (!is_now || !is_first()) return;
  if (plays() && step <= member_.decided && world_.bug != Bug::old_contributions_heard) return;
  const Value* gradients = message.body.find("gradients");
  if (!gradients || !gradients->list()) return;
  Contribution contribution;
  for (const auto& one : *gradients->list())
    contribution.gradients[static_cast<int>(integer_in(one, "unit"))] =
        as_bits(integer_in(one, "gradient"));
  const auto at = world_.bug == Bug::old_contributions_heard ? member_.decided + 1 : step;
  contributions_[at].insert_or_assign(static_cast<Life>(message.incarnation), contribution);
  if (plays()) decide();
}

void Node::decide() {
  const auto step = member_.decided + 1;
  const auto& of_step = contributions_[step];
  const auto wanted = member_.plan.members.size() -
                      (world_.bug == Bug::decision_without_all && member_.plan.members.size() > 1);
  if (of_step.size() < wanted) return;
  TinyModel::Weights gradients(static_cast<std::size_t>(world_.model.units()));
  for (const auto& [life, contribution] : of_step)
    for (const auto& [unit, gradient] : contribution.gradients)
      gradients[static_cast<std::size_t>(unit)] = gradient;
  contributions_.erase(step);
  const auto value = TinyModel::decide(gradients);
  world_.monitor.decided(step, value);
  transport::Message decision;
  decision.type = decision_type;
  decision.body.set("step", step);
  decision.body.set("value", as_signed(value));
  const bool is_save_point = step % world_.save_every == 0 || step == world_.steps;
  decision.body.set("hold", std::exchange(asked_to_hold_, false) || is_save_point);
  auto told = transport::to_message(recon::StepDecided{member_.epoch, step});
  told.body.set("ids", to_string(world_.model.read(step - 1)));
  told_.push_back(told);
  tell_head(std::move(told));
  // Apply the decision here first: from now on the step is done.
  apply(decision);
  for (const Life peer : member_.plan.members)
    if (peer != life()) tell_peer(peer, decision);
}

void Node::apply(const transport::Message& decision) {
  const bool is_own = decision.incarnation == 0;
  if (!is_own && decision.epoch != member_.epoch) return;
  if (!plays()) return;
  const auto step = integer_in(decision.body, "step");
  if (step != member_.decided + 1 && world_.bug != Bug::decision_applied_twice) return;
  const auto value = as_bits(integer_in(decision.body, "value"));
  member_.decided = step;
  for (auto& [unit, weight] : weights_) {
    weight = TinyModel::apply(weight, value);
    world_.monitor.has(life(), unit, step, weight);
  }
  if (world_.copies.are_kept()) give_copies();
  ++work_;
  const Value* hold = decision.body.find("hold");
  const bool holds = hold && hold->boolean() && *hold->boolean() && go_on_until_ < step;
  holds ? reach_boundary() : compute();
}

// Boundaries.

void Node::reach_boundary() {
  holds_ = true;
  if (pending_) return write_pending();
  if (is_first()) tell_save_point();
}

void Node::tell_save_point() { tell_head(recon::SavePoint{member_.epoch, member_.decided}); }

void Node::on(const recon::HoldSoon&) {
  if (holds_ && is_first()) return tell_save_point();
  asked_to_hold_ = true;
}

void Node::on(const recon::Resume& resume) {
  go_on_until_ = std::max(go_on_until_, resume.step);
  if (holds_ && member_.decided <= resume.step) compute();
}

// Messages.

void Node::tell_head(transport::Message message) {
  message.incarnation = as_bits(life());
  message.term = member_.term;
  message.seq = ++seq_;
  if (head_ != 0) world_.network.send(life(), head_, message);
}

void Node::tell_peer(Life peer, transport::Message message) {
  message.incarnation = as_bits(life());
  message.epoch = member_.epoch;
  world_.network.send(life(), peer, message);
}

}  // namespace troupe::simulation
