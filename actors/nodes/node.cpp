#include "actors/nodes/node.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

#include "actors/decide/detector.h"
#include "actors/link_probe.h"
#include "actors/nodes/node_stacks.h"
#include "actors/play/state_store.h"
#include "actors/play/states_of.h"
#include "core/digest.h"
#include "core/json.h"
#include "transport/control/conversation.h"
#include "transport/wire/message_types.h"
#include "transport/wire/refusal.h"

namespace troupe::actors {
namespace {

constexpr std::size_t most_waiting = 100'000;
constexpr auto say_away_every = std::chrono::minutes(1);
constexpr auto join_again = std::chrono::milliseconds(100);

/// News for the node's loop.
struct Connected {};
struct Lost {
  std::string why;
};
struct Leave {
  std::string reason;
};
using News = std::variant<Connected, Lost, Leave, transport::Message>;

}  // namespace

/// Does its work on one loop, in the order of the news. No task waits.
class Node::Work {
 public:
  Work(const Context& context, NodeOptions options)
      : env_(context.env),
        network_(context.network),
        system_(context.system),
        executors_(context.executors),
        options_(std::move(options)),
        term_(options_.term),
        term_proof_(options_.term_proof) {}

  Status start() {
    options_.dial.seed = conversation()->incarnation();
    options_.dial.backoff = node_backoff;
    if (auto dialed = dial(); !dialed) return dialed;
    loop_->post([this] { go_on(); });
    beat_later();
    return Done{};
  }

  ~Work() {
    loop_->end();
    heart_->end();
    node_attempts_.clear();
    conversation()->pause();
    client_.reset();
  }

  void hear(News news) {
    {
      const std::lock_guard lock(mutex_);
      if (news_.size() >= most_waiting) return;  // The head gives up a node that is so far behind.
      news_.push_back(std::move(news));
    }
    loop_->post([this] { next(); });
  }

  void tell(const GpuReadings& readings) { (void)say(transport::to_message(readings)); }

 private:
  struct Here {
    std::uint64_t epoch = 0;
    std::optional<std::chrono::nanoseconds> head_patience = {};  // Known once it has opened.
    std::unique_ptr<NodeAttempt> node_attempt = nullptr;
    bool is_ending = false;
    std::optional<transport::Message> next = {};  // An order to prepare, which waits for the end.

    bool has_part() const { return !is_ending || next; }
  };

  /// The states of a run, from one attempt to the next.
  struct Memory {
    StatesOf of;
    int nodes = 1;
    std::chrono::nanoseconds head_patience{};
    std::shared_ptr<StateStore> state_store;
    std::optional<Env::Time> until;  // When to drop them; empty: keep.
  };

  Status dial() {
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
  void head_is_away(const std::string& why) {
    {
      const std::lock_guard lock(mutex_);
      const auto now = env_.now();
      if (told_away_ && now - *told_away_ < say_away_every) return;
      told_away_ = now;
    }
    options_.say("no connection to the head: " + why + "; retrying");
  }

  /// Sends heartbeats, on a loop that computation and waits do not delay.
  void beat_later() {
    heart_->after(DetectorLimits().heartbeat_every, [this] {
      (void)say(transport::to_message(Heartbeat{}));
      beat_later();
    });
  }

  /// Handles the news that have come, now that there is a client.
  void go_on() {
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
  void next() {
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
  void set_patience() {
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

  bool has_news() const {
    const std::lock_guard lock(mutex_);
    return !news_.empty();
  }

  /// Returns when the first timeout expires.
  std::optional<Env::Time> next_patience() const {
    auto next = headless_until_;
    for (const auto& [run, memory] : state_stores_)
      if (memory.until && (!next || *memory.until < *next)) next = memory.until;
    return next;
  }
  void lose_patience(Env::Time now) {
    std::erase_if(state_stores_, [now](const auto& kept) {
      return kept.second.until && *kept.second.until <= now;
    });
    if (!headless_until_ || *headless_until_ > now) return;
    find_head();
    retire("no connection to the head for longer than limits.head_patience");
  }

  void heard(Connected&) { join(); }

  void join() {
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
  void come_anew(const std::string& why) {
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

  void heard(Lost& lost) {
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
  void find_head() {
    lost_at_.reset();
    headless_until_.reset();
  }

  /// Sets how long it waits for a lost head: as long as the most patient run does.
  void wait_for_head() {
    if (!lost_at_) return;
    std::optional<std::chrono::nanoseconds> patience;
    for (const auto& [run, here] : node_attempts_)
      if (!here.is_ending && here.head_patience)
        patience = std::max(patience.value_or(*here.head_patience), *here.head_patience);
    if (patience) headless_until_ = *lost_at_ + *patience;
  }

  void heard(Leave& leave) {
    leaving_ = true;
    if (!has_part() || !is_welcome_) return retire(leave.reason);
    options_.say("leaving: " + leave.reason);
    (void)say(transport::to_message(Leaving{leave.reason}));
  }

  void heard(transport::Message& message) {
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

  void act_on(transport::Message& message) {
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

  /// Returns null if the attempt that a message is about is over.
  NodeAttempt* attempt_of(const transport::Message& message) {
    const auto found = node_attempts_.find(message.run);
    if (found == node_attempts_.end() || found->second.epoch != message.epoch) return nullptr;
    return found->second.is_ending ? nullptr : found->second.node_attempt.get();
  }

  bool has_part_in(const std::string& run) const {
    const auto found = node_attempts_.find(run);
    return found != node_attempts_.end() && found->second.has_part();
  }
  bool has_part() const {
    return std::ranges::any_of(node_attempts_,
                               [](const auto& attempt) { return attempt.second.has_part(); });
  }

  void end_attempt(const std::string& run) {
    auto& here = node_attempts_.at(run);
    if (std::exchange(here.is_ending, true)) return;
    here.node_attempt->end([this, run] { attempt_ended(run); });
  }

  void attempt_ended(const std::string& run) {
    auto next = std::move(node_attempts_.at(run).next);
    node_attempts_.erase(run);
    if (next) return begin_attempt(*next);
    if (!node_attempts_.empty()) return;
    for (const auto& then : std::exchange(when_ended_, {})) then();
    if (leaving_) retire("stopped");
  }

  /// Ends all attempts, and then calls `then`.
  void end_attempts(Loop::Task then) {
    if (node_attempts_.empty()) return then();
    when_ended_.push_back(std::move(then));
    for (auto& [run, here] : node_attempts_) {
      here.next.reset();
      end_attempt(run);
    }
  }

  /// Tells the head that a node does not handle a message.
  void refuse(const transport::Message& message) {
    auto refusal = transport::to_message(
        transport::refusal(transport::RefusalCode::unsupported, "type",
                           "a node has no handler for messages of type '" + message.type + "'"));
    refusal.re = message.id;
    (void)say_about(message, std::move(refusal));
  }

  void refused(const transport::Message& message) {
    const auto refusal = transport::from_message<transport::Refusal>(message);
    options_.say("the head refused a message: " + (refusal ? refusal->text : refusal.error().text));
  }

  void forget(const transport::Message& message) { state_stores_.erase(message.run); }

  void retired(const transport::Message& message) {
    const auto order = transport::from_message<Retire>(message);
    come_anew(order ? order->reason : order.error().text);
  }

  void welcome(const transport::Message& message) {
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

  void reject(const transport::Message& message) {
    if (std::exchange(retires_, true)) return;
    const auto reject = transport::from_message<Rejected>(message);
    end_attempts([this, why = reject ? reject->reason + ": found " + reject->found + ", wanted " +
                                           reject->wanted
                                     : reject.error().text] { options_.rejected(why); });
  }

  void unfit(const transport::Message& message) {
    const auto unfit = transport::from_message<Unfit>(message);
    options_.say(unfit ? "not used by run " + unfit->run + ": " + unfit->why : unfit.error().text);
  }

  void dismiss(const transport::Message& message) {
    const auto order = transport::from_message<Dismiss>(message);
    if (!order) return options_.say(order.error().text);
    is_dismissed_ = true;
    Leave leave{"the head ended this node: " + order->reason};
    heard(leave);
  }

  void retire(const std::string& why) {
    if (std::exchange(retires_, true)) return;
    end_attempts([this, why] {
      state_stores_.clear();
      is_dismissed_ ? options_.dismissed(why) : options_.retired(why);
    });
  }

  void prepare(const transport::Message& message) {
    const auto found = node_attempts_.find(message.run);
    if (found == node_attempts_.end()) return begin_attempt(message);
    found->second.next = message;
    end_attempt(message.run);  // The head has given that attempt up.
  }

  void begin_attempt(const transport::Message& message) {
    const auto refuse = [&](const std::string& why) {
      (void)say_about(message, transport::to_message(PrepareFailed{why}));
    };
    if (leaving_) return refuse("stopping");
    auto order = transport::from_message<Prepare>(message);
    if (!order) return refuse(order.error().text);
    const auto& run = message.run;
    NodeAttemptOrder attempt{
        .open_home = [open = options_.open_run, config = order->config,
                      placement = order->placement,
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
  std::shared_ptr<StateStore> state_store_of(const std::string& run, const StatesOf& of, int nodes,
                                             RunHome& home) {
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

  void start(const transport::Message& message) {
    auto* const node_attempt = attempt_of(message);
    if (!node_attempt) return;  // The attempt is over.
    const auto order = transport::from_message<Start>(message);
    if (order) return node_attempt->start(*order);
    (void)say_about(message, transport::to_message(PrepareFailed{order.error().text}));
  }

  void stop(const transport::Message& message) {
    const auto found = node_attempts_.find(message.run);
    if (found != node_attempts_.end()) {
      auto& here = found->second;
      if (here.next && here.next->epoch <= message.epoch) here.next.reset();
      if (here.epoch <= message.epoch) end_attempt(message.run);
    }
    if (leaving_ && node_attempts_.empty()) retire("stopped");
  }

  void apply_fault(const transport::Message& message) {
    const auto chaos = transport::from_message<Chaos>(message);
    if (!chaos) return options_.say("dropped a fault injection: " + chaos.error().text);
    options_.say("a drill: " +
                 std::string(enum_names(chaos->what)[static_cast<std::size_t>(chaos->what)]));
    chaos->what == Chaos::What::partition ? part(chaos->time()) : options_.apply_fault(*chaos);
  }

  /// Answers where the threads of this process are. This loop goes on meanwhile.
  void tell_stacks(const transport::Message& message) {
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

  void open_doors(const transport::Message& message) {
    const auto order = transport::from_message<OpenDoors>(message);
    if (!order) return options_.say("dropped a question: " + order.error().text);
    (void)say(transport::to_message(link_probe_.open(*order)));
  }

  void probe_links(const transport::Message& message) {
    auto order = transport::from_message<ProbeLinks>(message);
    if (!order) return options_.say("dropped a question: " + order.error().text);
    link_probe_.measure(std::move(*order),
                        [this](NodeLinks links) { (void)say(transport::to_message(links)); });
  }

  /// Closes all connections for this long.
  void part(std::chrono::nanoseconds time) {
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

  Status say_about(const transport::Message& order, transport::Message message) {
    message.run = order.run;
    message.epoch = order.epoch;
    return say(std::move(message));
  }
  Status say(transport::Message message) { return conversation()->say(std::move(message)); }

  std::shared_ptr<transport::Conversation> new_conversation() const {
    return std::make_shared<transport::Conversation>(transport::new_incarnation(env_));
  }
  std::shared_ptr<transport::Conversation> conversation() const {
    const std::lock_guard lock(mutex_);
    return conversation_;
  }

  Env& env_;
  transport::Network& network_;
  caf_shim::System& system_;
  Executors& executors_;
  NodeOptions options_;
  const Env::Time started_ = env_.now();  // Its speed was measured just before.

  // Used by the node's loop.
  std::uint64_t term_;
  std::string term_proof_;
  std::map<std::string, Memory> state_stores_;  // Keyed by run.
  std::map<std::string, Here> node_attempts_;   // Keyed by run.
  std::vector<Loop::Task> when_ended_;          // Run once no attempt is left.
  bool was_welcome_ = false;                    // The head has welcomed it,
  bool is_welcome_ = false;                     // and has done so on this connection.
  bool leaving_ = false;
  bool comes_anew_ = false;           // Its attempts end before it joins as a new node,
  bool retires_ = false;              // or before it retires.
  bool is_dialed_ = false;            // News wait as long as there is no client.
  std::optional<Loop::Timer> timer_;  // The timer of the first timeout.
  bool is_dismissed_ = false;
  std::optional<Env::Time> told_away_;       // When it last reported an unreachable head.
  std::optional<Env::Time> lost_at_;         // When a head was lost that runs wait for,
  std::optional<Env::Time> headless_until_;  // and how long they wait.

  mutable std::mutex mutex_;
  std::shared_ptr<transport::Conversation> conversation_ = new_conversation();
  std::deque<News> news_;
  std::unique_ptr<transport::ControlClient> client_;
  const std::unique_ptr<Loop> loop_ = env_.make_loop({"node"});
  const std::unique_ptr<Loop> heart_ = env_.make_loop({"heart"});
  LinkProbe link_probe_{{env_, *loop_, network_, options_.interface + ":0",
                         options_.carriers == Carriers::shm_and_tcp}};
};

Node::Node(const Context& context, NodeOptions options)
    : work_(std::make_unique<Work>(context, std::move(options))) {}
Node::~Node() = default;

Result<std::unique_ptr<Node>> Node::start(const Context& context, NodeOptions options) {
  std::unique_ptr<Node> node(new Node(context, std::move(options)));
  if (auto started = node->work_->start(); !started) return started.error();
  return node;
}

void Node::tell(const GpuReadings& readings) { work_->tell(readings); }
void Node::leave(const std::string& reason) { work_->hear(Leave{reason}); }

}  // namespace troupe::actors
