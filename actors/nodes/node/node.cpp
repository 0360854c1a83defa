#include "actors/nodes/node.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "actors/decide/detector.h"
#include "actors/nodes/node/node_work.h"
#include "actors/nodes/node_stacks.h"
#include "transport/wire/message_types.h"
#include "transport/wire/refusal.h"

namespace troupe::actors {
namespace {

constexpr std::size_t most_waiting = 100'000;
constexpr auto say_away_every = std::chrono::minutes(1);

}  // namespace

Status Node::Work::start() {
  options_.dial.seed = conversation()->incarnation();
  options_.dial.backoff = node_backoff;
  if (auto dialed = dial(); !dialed) return dialed;
  loop_->post([this] { go_on(); });
  beat_later();
  return Done{};
}

Node::Work::~Work() {
  loop_->end();
  heart_->end();
  node_attempts_.clear();
  conversation()->pause();
  client_.reset();
}

void Node::Work::hear(News news) {
  {
    const std::lock_guard lock(mutex_);
    if (news_.size() >= most_waiting) return;  // The head gives up a node that is so far behind.
    news_.push_back(std::move(news));
  }
  loop_->post([this] { next(); });
}

Status Node::Work::dial() {
  auto client =
      network_.dial(options_.dial,
                    {.connected =
                         [this] {
                           {
                             const std::lock_guard lock(mutex_);
                             told_away_.reset();
                           }
                           hear(Connected{});
                         },
                     .message = [this](transport::Message message) { hear(std::move(message)); },
                     .gone = [this](transport::Gone, const std::string& why) { hear(Lost{why}); },
                     .refused = [this](const std::string& why) { head_is_away(why); }},
                    *loop_);
  if (!client) return client.error();
  client_ = std::move(*client);
  client_->start();
  return Done{};
}

/// Reports why the head cannot be reached: once a minute, since several tries fail each second.
void Node::Work::head_is_away(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    const auto now = env_.now();
    if (told_away_ && now - *told_away_ < say_away_every) return;
    told_away_ = now;
  }
  options_.say("no connection to the head: " + why + "; retrying");
}

/// Sends heartbeats, on a loop that computation and waits do not delay.
void Node::Work::beat_later() {
  heart_->after(DetectorLimits().heartbeat_every, [this] {
    (void)say(transport::to_message(Heartbeat{}));
    beat_later();
  });
}

/// Handles the news that have come, now that there is a client.
void Node::Work::go_on() {
  std::size_t waiting = 0;
  {
    const std::lock_guard lock(mutex_);
    waiting = news_.size();
  }
  is_dialed_ = true;
  for (std::size_t i = 0; i < waiting; ++i) loop_->post([this] { next(); });
  set_patience();
}

/// Handles the first news. Each has a task, so that the end of the loop waits for one only.
void Node::Work::next() {
  if (!is_dialed_) return;  // go_on() comes later.
  std::optional<News> news;
  {
    const std::lock_guard lock(mutex_);
    if (news_.empty()) return;
    news = std::move(news_.front());
    news_.pop_front();
  }
  std::visit([this](auto& one) { heard(one); }, *news);
  set_patience();
}

/// Sets the timer of the first timeout.
void Node::Work::set_patience() {
  if (timer_) loop_->cancel(*timer_);
  timer_.reset();
  const auto until = next_patience();
  if (!until) return;
  timer_ = loop_->after(*until - env_.now(), [this, until = *until] {
    timer_.reset();
    // News that have come in time may end the wait.
    if (!is_dialed_ || has_news()) return;
    lose_patience(until);
    set_patience();
  });
}

bool Node::Work::has_news() const {
  const std::lock_guard lock(mutex_);
  return !news_.empty();
}

/// Returns when the first timeout expires.
std::optional<Env::Time> Node::Work::next_patience() const {
  auto next = headless_until_;
  for (const auto& [run, memory] : state_stores_)
    if (memory.until && (!next || *memory.until < *next)) next = memory.until;
  return next;
}

void Node::Work::lose_patience(Env::Time now) {
  std::erase_if(state_stores_,
                [now](const auto& kept) { return kept.second.until && *kept.second.until <= now; });
  if (!headless_until_ || *headless_until_ > now) return;
  find_head();
  retire("no connection to the head for longer than limits.head_patience");
}

void Node::Work::heard(transport::Message& message) {
  if (retires_ || comes_anew_) return;
  // A head that refuses an unproved term has a lower term itself.
  if (message.type == Rejected::type) return act_on(message);
  if (message.term < term_) return;  // A newer head has taken the sender's place.
  // These messages come before both ends number their messages, as do the socket's refusals.
  const bool is_refusal = message.type == transport::Refusal::type && message.seq == 0;
  if (message.type == Welcome::type || message.type == Retire::type || is_refusal)
    return act_on(message);
  auto now = conversation()->hear(std::move(message));
  if (!now) return options_.say("dropped a message: " + now.error().text);
  if (*now) act_on(**now);
}

void Node::Work::act_on(transport::Message& message) {
  using Act = void (Work::*)(const transport::Message&);
  static constexpr transport::Handles<Act> handlers[] = {
      {Prepare::type, &Work::prepare},
      {Start::type, &Work::start},
      {Stop::type, &Work::stop},
      {Forget::type, &Work::forget},
      {Chaos::type, &Work::apply_fault},
      {Unfit::type, &Work::unfit},
      {Dismiss::type, &Work::dismiss},
      {transport::Refusal::type, &Work::refused},
      {Rejected::type, &Work::reject},
      {Welcome::type, &Work::welcome},
      {Retire::type, &Work::retired},
      {TellStacks::type, &Work::tell_stacks},
      {OpenDoors::type, &Work::open_doors},
      {ProbeLinks::type, &Work::probe_links},
  };
  static_assert(transport::handles_all(transport::Handler::node, handlers));
  if (const auto* act = transport::find_handler(handlers, message.type))
    return (this->**act)(message);
  const auto* type = transport::find_message_type(message.type);
  if (!type || !type->handlers.has(transport::Handler::player)) return refuse(message);
  auto* node_attempt = attempt_of(message);
  if (!node_attempt) return;  // The attempt is over.
  if (auto told = node_attempt->deliver(std::move(message)); !told)
    options_.say("dropped a message: " + told.error().text);
}

/// Tells the head that a node does not handle a message.
void Node::Work::refuse(const transport::Message& message) {
  auto refusal = transport::to_message(
      transport::refusal(transport::RefusalCode::unsupported, "type",
                         "a node has no handler for messages of type '" + message.type + "'"));
  refusal.re = message.id;
  (void)say_about(message, std::move(refusal));
}

void Node::Work::refused(const transport::Message& message) {
  const auto refusal = transport::from_message<transport::Refusal>(message);
  options_.say("the head refused a message: " + (refusal ? refusal->text : refusal.error().text));
}

void Node::Work::apply_fault(const transport::Message& message) {
  const auto chaos = transport::from_message<Chaos>(message);
  if (!chaos) return options_.say("dropped a fault injection: " + chaos.error().text);
  options_.say("a drill: " +
               std::string(enum_names(chaos->what)[static_cast<std::size_t>(chaos->what)]));
  chaos->what == Chaos::What::partition ? part(chaos->time()) : options_.apply_fault(*chaos);
}

/// Answers where the threads of this process are. This loop goes on meanwhile.
void Node::Work::tell_stacks(const transport::Message& message) {
  const auto question = transport::from_message<TellStacks>(message);
  if (!question) return options_.say("dropped a question: " + question.error().text);
  const auto stacks = std::make_shared<std::vector<ThreadStack>>();
  (void)loop_->aside(
      "stacks",
      [this, stacks] {
        if (options_.thread_stacks) *stacks = options_.thread_stacks();
      },
      [this, stacks, question = *question] {
        (void)say(transport::to_message(answer_with(std::move(*stacks), question)));
      });
}

void Node::Work::open_doors(const transport::Message& message) {
  const auto order = transport::from_message<OpenDoors>(message);
  if (!order) return options_.say("dropped a question: " + order.error().text);
  (void)say(transport::to_message(link_probe_.open(*order)));
}

void Node::Work::probe_links(const transport::Message& message) {
  auto order = transport::from_message<ProbeLinks>(message);
  if (!order) return options_.say("dropped a question: " + order.error().text);
  link_probe_.measure(std::move(*order),
                      [this](NodeLinks links) { (void)say(transport::to_message(links)); });
}

/// Closes all connections for this long.
void Node::Work::part(std::chrono::nanoseconds time) {
  conversation()->pause();
  client_.reset();
  is_welcome_ = false;
  find_head();
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(news_, [](const News& one) { return !std::holds_alternative<Leave>(one); });
  }
  is_dialed_ = false;
  end_attempts([this, time] {
    loop_->after(time, [this] {
      if (auto dialed = dial(); !dialed) retire(dialed.error().text);
      go_on();
    });
  });
}

Node::Node(const Context& context, NodeOptions options)
    : work_(std::make_unique<Work>(context, std::move(options))) {}
Node::~Node() = default;

Result<std::unique_ptr<Node>> Node::start(const Context& context, NodeOptions options) {
  std::unique_ptr<Node> node(new Node(context, std::move(options)));
  if (auto started = node->work_->start(); !started) return started.error();
  return node;
}

void Node::tell(const GpuReadings& readings) { work_->tell(transport::to_message(readings)); }
void Node::tell(const MachineLoad& load) { work_->tell(transport::to_message(load)); }
void Node::leave(const std::string& reason) { work_->hear(Work::Leave{reason}); }

}  // namespace troupe::actors
