#include "bench/crowd.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "actors/decide/detector.h"
#include "actors/nodes/node.h"
#include "actors/nodes/node_messages.h"
#include "actors/nodes/run_orders.h"
#include "core/descriptor.h"
#include "core/descriptor_limit.h"
#include "core/threads/event_fd.h"
#include "core/threads/real_env.h"
#include "transport/control/conversation.h"
#include "transport/control/endpoint.h"
#include "transport/control/zmq_parts.h"

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

constexpr int descriptors_of_node = 2;  // A socket and its connection.
constexpr int other_descriptors = 500;  // Also for connections that ZeroMQ is about to close.
constexpr std::size_t most_parts = 12;

/// Returns a loopback address that no other node has.
std::string address_of(int node) {
  constexpr int in_row = 250;
  return "127.0." + std::to_string(1 + node / in_row) + "." + std::to_string(1 + node % in_row);
}

/// One node: its connection, and what it knows of the head.
struct Member {
  Member(int number_, Env& env)
      : number(number_),
        conversation(std::make_shared<transport::Conversation>(transport::new_incarnation(env))) {}

  int number;
  std::shared_ptr<transport::Conversation> conversation;
  std::optional<zmq::socket_t> socket;
  bool connected = false;
  bool welcome = false;      // On this connection,
  bool was_welcome = false;  // or on an earlier one.
  bool is_away = false;      // It was taken away.
  std::uint64_t term = 0;
  std::string term_proof;
  // The encoded heartbeat, and what it acknowledges.
  std::vector<std::string> heartbeat;
  std::uint64_t heartbeat_ack = 0;
};

}  // namespace

class Crowd::Work {
 public:
  explicit Work(CrowdOptions options) : options_(std::move(options)) {
    context_.set(zmq::ctxopt::max_sockets, options_.nodes + 1);
  }
  ~Work() {
    post([this] { stops_ = true; });
    if (thread_.joinable()) thread_.join();
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  Status start() {
    raise_descriptor_limit();
    const auto needed =
        static_cast<std::size_t>(descriptors_of_node * options_.nodes + other_descriptors);
    if (descriptor_limit() < needed)
      return Error{"a crowd of " + std::to_string(options_.nodes) + " nodes opens up to " +
                   std::to_string(needed) + " descriptors, but this process may open " +
                   std::to_string(descriptor_limit()) +
                   "; raise the hard limit (ulimit -Hn) or ask for fewer nodes"};
    auto endpoint = transport::parse_endpoint(options_.endpoint);
    if (!endpoint) return endpoint.error();
    endpoint_ = *endpoint;
    epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
    watch(orders_.descriptor(), own_events);
    for (int i = 0; i < options_.nodes; ++i) members_.push_back(std::make_unique<Member>(i, env_));
    awaited_ = members_.size();
    thread_ = std::thread([this] { run(); });
    return Done{};
  }

  Status wait_until_welcome(std::chrono::seconds patience) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, patience, [this] { return counts_.welcome == awaited_; }))
      return Done{};
    return Error{std::to_string(counts_.welcome) + " of " + std::to_string(awaited_) +
                 " nodes are welcome after " + std::to_string(patience.count()) + " s" +
                 (counts_.refusal.empty() ? "" : "; one was rejected: " + counts_.refusal)};
  }
  Counts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

  enum class How { killed, frozen };
  void take_away(int nodes, How how) {
    post([this, nodes, how] {
      int left = nodes;
      for (auto& member : members_) {
        if (left == 0 || member->is_away) continue;
        --left;
        member->is_away = true;
        not_welcome(*member);
        if (how == How::killed) hang_up(*member);
        const std::lock_guard lock(mutex_);
        --awaited_;
      }
      changed_.notify_all();
    });
  }

 private:
  using Tag = std::uint64_t;
  static constexpr Tag own_events = ~Tag{0};

  void post(std::function<void()> order) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(order));
    }
    orders_.ring();
  }

  void watch(int descriptor, Tag tag) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = tag;
    epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, descriptor, &event);
  }

  void run() {
    for (auto& member : members_) dial(*member);
    const auto now = Clock::now();
    const auto period = actors::DetectorLimits().heartbeat_every;
    for (auto& member : members_)
      beats_.push_back({now + period * member->number / options_.nodes, member->number});
    std::array<epoll_event, 256> events{};
    while (!stops_) {
      const int count = epoll_wait(epoll_.number(), events.data(), events.size(), patience());
      for (int i = 0; i < count; ++i) {
        const Tag tag = events[static_cast<std::size_t>(i)].data.u64;
        if (tag == own_events)
          follow_orders();
        else
          follow(*members_[tag]);
      }
      keep_time();
    }
    for (auto& member : members_) hang_up(*member);
  }

  int patience() const {
    return static_cast<int>(transport::until(beats_.front().first, Clock::now()).count());
  }

  void follow_orders() {
    orders_.clear();
    std::vector<std::function<void()>> orders;
    {
      const std::lock_guard lock(mutex_);
      orders.swap(waiting_);
    }
    for (const auto& order : orders) order();
  }

  void keep_time() {
    const auto now = Clock::now();
    while (beats_.front().first <= now) {
      const auto [due, number] = beats_.front();
      beats_.pop_front();
      beats_.push_back({due + actors::DetectorLimits().heartbeat_every, number});
      auto& member = *members_[static_cast<std::size_t>(number)];
      if (member.welcome && !member.is_away) beat(member, now - due);
    }
  }

  // The functions below follow connections.

  /// ZeroMQ dials again with the same pauses as a node.
  void dial(Member& member) {
    namespace option = zmq::sockopt;
    member.socket.emplace(context_, zmq::socket_type::dealer);
    auto& socket = *member.socket;
    transport::set_link_options(socket, link_, endpoint_);
    transport::ask_far_end(socket, link_);
    transport::set_client_keys(socket, options_.keys, options_.head_key);
    const auto in_milliseconds = [](auto time) {
      return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
    };
    socket.set(option::reconnect_ivl, in_milliseconds(actors::node_backoff.first));
    socket.set(option::reconnect_ivl_max, in_milliseconds(actors::node_backoff.longest));
    watch(socket.get(option::fd), static_cast<Tag>(member.number));
    socket.connect("tcp://" + address_of(member.number) + ":0;" + endpoint_.host + ":" +
                   std::to_string(endpoint_.port));
    follow(member);
  }

  void hang_up(Member& member) {
    if (!member.socket) return;
    epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, member.socket->get(zmq::sockopt::fd), nullptr);
    member.socket.reset();
  }

  /// Reads all that a node's socket has to say.
  void follow(Member& member) {
    if (!member.socket) return;
    // From the end of the handshake to that of the connection the socket takes messages.
    const auto takes = [&] {
      return (member.socket->get(zmq::sockopt::events) & ZMQ_POLLOUT) != 0;
    };
    if (!member.connected && takes()) {
      member.connected = true;
      {
        const std::lock_guard lock(mutex_);
        ++counts_.connected;
      }
      if (!member.is_away) join(member);
    }
    read(member);
    if (!member.connected || takes()) return;
    if (member.is_away) return hang_up(member);
    not_welcome(member);
    member.connected = false;
    member.conversation->pause();
  }

  void read(Member& member) {
    while (member.socket && parts_.receive(*member.socket, most_parts)) {
      auto message = transport::decode(parts_.from(0));
      if (message && !member.is_away) hear(member, std::move(*message));
    }
  }

  // The functions below are the protocol of a node.

  Status send(Member& member, const transport::Message& message) {
    const auto parts = transport::encode(message);
    if (!parts) return parts.error();
    return send(member, *parts);
  }
  static Status send(Member& member, const std::vector<std::string>& parts) {
    if (!member.connected || transport::send_parts(*member.socket, std::nullopt, parts) != 0)
      return Error{"there is no connection"};
    return Done{};
  }

  void join(Member& member) {
    actors::Join join;
    join.name = options_.name + "-" + std::to_string(member.number);
    join.inventory.host = "host-" + std::to_string(member.number);
    join.inventory.pid = member.number + 1;
    join.inventory.version = TROUPE_VERSION;
    join.inventory.memory = std::int64_t{1} << 40;
    join.inventory.precision = "fp32";
    join.inventory.networks = {{"eth0", address_of(member.number), 10'000}};
    join.again = member.was_welcome;
    join.term_proof = member.term_proof;
    auto message = transport::to_message(join);
    message.incarnation = member.conversation->incarnation();
    message.ack = member.conversation->ack();
    message.term = member.term;
    (void)send(member, message);
    const std::lock_guard lock(mutex_);
    ++counts_.joins;
  }

  void beat(Member& member, Clock::duration late) {
    if (const auto ack = member.conversation->ack();
        member.heartbeat.empty() || ack != member.heartbeat_ack) {
      auto message = transport::to_message(actors::Heartbeat{});
      message.incarnation = member.conversation->incarnation();
      message.ack = member.heartbeat_ack = ack;
      member.heartbeat = *transport::encode(message);
    }
    (void)send(member, member.heartbeat);
    {
      const std::lock_guard lock(mutex_);
      ++counts_.heartbeats;
      counts_.most_late = std::max<std::chrono::nanoseconds>(counts_.most_late, late);
    }
    // Sending may take news that the descriptor does not tell again.
    follow(member);
  }

  void hear(Member& member, transport::Message message) {
    if (message.type == actors::Rejected::type) {
      const auto reject = transport::from_message<actors::Rejected>(message);
      const std::lock_guard lock(mutex_);
      counts_.refusal = reject ? reject->reason + ": found " + reject->found : "unknown";
      return;
    }
    if (message.term < member.term) return;
    if (message.type == actors::Welcome::type) return welcome(member, message);
    if (message.type == actors::Retire::type) return come_anew(member);
    auto now = member.conversation->hear(std::move(message));
    if (now && *now) act_on(member, **now);
  }

  void welcome(Member& member, const transport::Message& message) {
    const auto welcome = transport::from_message<actors::Welcome>(message);
    const auto resumed = member.conversation->resume(
        message.incarnation, message.ack,
        [this, &member](const transport::Message& said) { return send(member, said); });
    if (!welcome || !resumed) return;
    member.term = message.term;
    member.term_proof = welcome->term_proof;
    member.was_welcome = true;
    if (std::exchange(member.welcome, true)) return;
    {
      const std::lock_guard lock(mutex_);
      ++counts_.welcome;
    }
    changed_.notify_all();
  }

  /// Joins as another node, since the head has forgotten this one.
  void come_anew(Member& member) {
    not_welcome(member);
    member.conversation =
        std::make_shared<transport::Conversation>(transport::new_incarnation(env_));
    member.heartbeat.clear();
    member.was_welcome = false;
    join(member);
  }

  void not_welcome(Member& member) {
    if (!std::exchange(member.welcome, false)) return;
    const std::lock_guard lock(mutex_);
    --counts_.welcome;
  }

  void act_on(Member& member, const transport::Message& message) {
    if (message.type != actors::Prepare::type) return;
    auto answer = transport::to_message(
        actors::PrepareFailed{"this node is one of a crowd, and has no devices"});
    answer.run = message.run;
    answer.epoch = message.epoch;
    (void)member.conversation->say(std::move(answer));
  }

  CrowdOptions options_;
  RealEnv env_;
  transport::LinkOptions link_;
  transport::Endpoint endpoint_;
  zmq::context_t context_{1};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Counts counts_;
  std::size_t awaited_ = 0;
  std::vector<std::function<void()>> waiting_;
  EventFd orders_;

  // Used by the thread.
  Descriptor epoll_;
  bool stops_ = false;
  transport::Parts parts_;
  std::vector<std::unique_ptr<Member>> members_;
  std::deque<std::pair<Time, int>> beats_;  // All have one period, so the first is due first.

  std::thread thread_;
};

Crowd::Crowd(std::unique_ptr<Work> work) : work_(std::move(work)) {}
Crowd::~Crowd() = default;

Result<std::unique_ptr<Crowd>> Crowd::start(CrowdOptions options) {
  auto work = std::make_unique<Work>(std::move(options));
  if (auto started = work->start(); !started) return started.error();
  return std::unique_ptr<Crowd>(new Crowd(std::move(work)));
}

Status Crowd::wait_until_welcome(std::chrono::seconds patience) {
  return work_->wait_until_welcome(patience);
}
Crowd::Counts Crowd::counts() const { return work_->counts(); }
void Crowd::kill(int nodes) { work_->take_away(nodes, Work::How::killed); }
void Crowd::freeze(int nodes) { work_->take_away(nodes, Work::How::frozen); }

}  // namespace troupe::bench
