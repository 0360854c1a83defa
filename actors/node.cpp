#include "actors/node.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <variant>

namespace troupe::actors {
namespace {

constexpr std::size_t most_waiting = 100'000;

/// What the thread of a node is told by that of its socket.
struct Connected {};
struct Lost {
  std::string why;
};
using News = std::variant<Connected, Lost, transport::Message>;

}  // namespace

/// All that waits is done here, on one thread, in the order in which it came.
class Node::Work {
 public:
  explicit Work(NodeOptions options) : options_(std::move(options)) {}

  Status start() {
    std::random_device random;
    incarnation_ = (static_cast<std::uint64_t>(random()) << 31) ^ random();
    options_.dial.seed = incarnation_;
    if (auto dialed = dial(); !dialed) return dialed;
    thread_ = std::thread([this] { run(); });
    return Done{};
  }

  ~Work() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    came_.notify_all();
    if (thread_.joinable()) thread_.join();
    sites_.clear();
    client_.reset();
  }

 private:
  struct Here {
    std::uint64_t epoch = 0;
    std::unique_ptr<Site> site;
  };

  Status dial() {
    auto client = transport::ControlClient::dial(
        options_.dial,
        {.connected = [this] { hear(Connected{}); },
         .message = [this](transport::Message message) { hear(std::move(message)); },
         .gone = [this](transport::Gone, const std::string& why) { hear(Lost{why}); },
         .refused =
             [this](const std::string& why) { options_.say("the head is not there: " + why); }});
    if (!client) return client.error();
    const std::lock_guard lock(client_mutex_);
    client_ = std::move(*client);
    return Done{};
  }

  void hear(News news) {
    {
      const std::lock_guard lock(mutex_);
      if (news_.size() >= most_waiting) return;  // The head gives up on one that is so far behind.
      news_.push_back(std::move(news));
    }
    came_.notify_all();
  }

  void run() {
    for (;;) {
      News news;
      {
        std::unique_lock lock(mutex_);
        came_.wait(lock, [&] { return stopping_ || !news_.empty(); });
        if (stopping_) return;
        news = std::move(news_.front());
        news_.pop_front();
      }
      std::visit([this](auto& one) { heard(one); }, news);
    }
  }

  void heard(Connected&) {
    (void)say(transport::to_message(Join{options_.name, options_.inventory}));
  }

  void heard(Lost& lost) {
    // Whoever leads the runs cannot be heard: nothing that would be decided here could be told.
    if (!sites_.empty()) options_.say("lost the head, so its runs end here: " + lost.why);
    sites_.clear();
  }

  void heard(transport::Message& message) {
    if (message.type == Welcome::type) return welcome(message);
    if (message.type == Rejected::type) return reject(message);
    if (message.type == Prepare::type) return prepare(message);
    if (message.type == Stop::type) return stop(message);
    if (message.type == Chaos::type) return suffer(message);
    const auto found = sites_.find(message.run);
    if (found == sites_.end() || found->second.epoch != message.epoch) return;  // It is over.
    auto& site = *found->second.site;
    if (message.type == Start::type) return start(site, message);
    auto told = tell(site, message);
    if (!told) options_.say("dropped a message: " + told.error().text);
  }

  static Status tell(Site& site, transport::Message& message) {
    const Value* to = message.body.find("to");
    if (!to) return Error{message.type + ": names no player"};
    const auto player = transport::from_value<PlayerId>(*to, message.type + ".to");
    if (!player) return player.error();
    Dispatch dispatch{message.type, std::move(message.body), {}, {}};
    if (!message.payload.empty()) dispatch.bytes = std::move(message.payload[0]);
    return site.deliver(*player, std::move(dispatch));
  }

  void welcome(const transport::Message& message) {
    const auto welcome = transport::from_message<Welcome>(message);
    if (!welcome) return options_.say(welcome.error().text);
    options_.say("joined " + options_.dial.endpoint + " as " + welcome->name);
  }

  void reject(const transport::Message& message) {
    const auto reject = transport::from_message<Rejected>(message);
    options_.rejected(reject ? reject->reason + ": found " + reject->found + ", wanted " +
                                   reject->wanted
                             : reject.error().text);
  }

  void prepare(const transport::Message& message) {
    const auto answer = [&](auto body) {
      auto said = transport::to_message(body);
      said.run = message.run;
      said.epoch = message.epoch;
      (void)say(std::move(said));
    };
    sites_.erase(message.run);  // An attempt that the head has given up.
    auto order = transport::from_message<Prepare>(message);
    if (!order) return answer(PrepareFailed{order.error().text});
    auto home = options_.open_run(order->config, order->placement, order->here);
    if (!home) return answer(PrepareFailed{home.error().text});
    auto site =
        Site::open(channels_, {.home = std::move(*home),
                               .prepare = std::move(*order),
                               .attempt = static_cast<int>(message.epoch),
                               .epoch = epoch_of(message.run, message.epoch),
                               .interface = options_.interface,
                               .carriers = options_.carriers,
                               .tell_head = [this, run = message.run, epoch = message.epoch](
                                                transport::Message said) -> Status {
                                 said.run = run;
                                 said.epoch = epoch;
                                 return say(std::move(said));
                               }});
    if (!site) return answer(PrepareFailed{site.error().text});
    const auto address = (*site)->address();
    sites_[message.run] = {message.epoch, std::move(*site)};
    answer(Prepared{address});
  }

  void start(Site& site, const transport::Message& message) {
    const auto fail = [&](const std::string& why) {
      auto said = transport::to_message(PrepareFailed{why});
      said.run = message.run;
      said.epoch = message.epoch;
      (void)say(std::move(said));
    };
    const auto order = transport::from_message<Start>(message);
    if (!order) return fail(order.error().text);
    if (auto started = site.start(*order); !started) return fail(started.error().text);
  }

  void stop(const transport::Message& message) {
    const auto found = sites_.find(message.run);
    if (found != sites_.end() && found->second.epoch <= message.epoch) sites_.erase(found);
  }

  void suffer(const transport::Message& message) {
    const auto chaos = transport::from_message<Chaos>(message);
    if (!chaos) return options_.say("dropped a drill: " + chaos.error().text);
    options_.say("a drill: " +
                 std::string(enum_names(chaos->what)[static_cast<std::size_t>(chaos->what)]));
    chaos->what == Chaos::What::partition ? part(chaos->time()) : options_.suffer(*chaos);
  }

  /// Without a connection to anybody for so long.
  void part(std::chrono::nanoseconds time) {
    // The head first: it must not believe that it could give this node something to do.
    std::shared_ptr<transport::ControlClient> client;
    {
      const std::lock_guard lock(client_mutex_);
      client.swap(client_);
    }
    client.reset();
    sites_.clear();
    std::unique_lock lock(mutex_);
    news_.clear();
    came_.wait_for(lock, time, [this] { return stopping_; });
    if (stopping_) return;
    lock.unlock();
    if (auto dialed = dial(); !dialed) options_.rejected(dialed.error().text);
  }

  Status say(transport::Message message) {
    message.incarnation = incarnation_;
    std::shared_ptr<transport::ControlClient> client;
    {
      const std::lock_guard lock(client_mutex_);
      client = client_;
    }
    if (!client) return Error{"this node is cut off: a drill"};
    return client->send(message);
  }

  NodeOptions options_;
  std::uint64_t incarnation_ = 0;
  transport::ChannelThread channels_;
  std::map<std::string, Here> sites_;  // By run. The thread's own.
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<News> news_;
  bool stopping_ = false;
  std::mutex client_mutex_;  // Of the next line: players speak to the head from any thread.
  std::shared_ptr<transport::ControlClient> client_;
  std::thread thread_;
};

Node::Node(NodeOptions options) : work_(std::make_unique<Work>(std::move(options))) {}
Node::~Node() = default;

Result<std::unique_ptr<Node>> Node::start(NodeOptions options) {
  std::unique_ptr<Node> node(new Node(std::move(options)));
  if (auto started = node->work_->start(); !started) return started.error();
  return node;
}

}  // namespace troupe::actors
