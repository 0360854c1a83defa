#include "transport/publisher.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "transport/connections.h"
#include "transport/zap.h"
#include "transport/zmq_parts.h"

namespace troupe::transport {
namespace {

using Clock = std::chrono::steady_clock;

/// A topic has a run's name and a type. It cannot be less: a handshake with keys takes a part of
/// it.
constexpr std::int64_t longest_subscription = 1024;
constexpr int fair_share = 256;
/// Runs whose events are counted; those that were silent the longest begin anew.
constexpr std::size_t most_runs = 4096;
/// Of what was refused, this much is told.
constexpr Rate telling_address = {.per_second = 1.0 / 60, .at_once = 1};
constexpr Rate telling_all = {.per_second = 10, .at_once = 100};

/// Numbers the events of each run.
class RunNumbers {
 public:
  std::uint64_t next(const std::string& run) {
    ++clock_;
    if (!last_.contains(run) && last_.size() >= most_runs)
      last_.erase(
          std::ranges::min_element(last_, {}, [](const auto& entry) { return entry.second.used; }));
    auto& entry = last_[run];
    entry.used = clock_;
    return ++entry.seq;
  }

 private:
  struct Entry {
    std::uint64_t seq = 0;
    std::uint64_t used = 0;
  };

  std::uint64_t clock_ = 0;
  std::map<std::string, Entry> last_;
};

}  // namespace

std::string topic_of(const Message& event) { return event.run + "/" + event.type; }

class Publisher::Loop {
 public:
  Loop(PublisherOptions options, PublisherEvents events)
      : options_(std::move(options)),
        events_(std::move(events)),
        queue_(options_.link),
        telling_(telling_address, telling_all) {}
  ~Loop() {
    stop_ = true;
    queue_.wake().ring();
    if (!thread_.joinable()) return;
    thread_.join();
    remove_socket_file(bound_);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  Status start() {
    const auto endpoint = parse_endpoint(options_.endpoint);
    if (!endpoint) return endpoint.error();
    if (auto safe = check_security(*endpoint, options_.keys, options_.link.plain); !safe)
      return safe;
    try {
      zap_ = zap_socket(context_);
      socket_ = zmq::socket_t(context_, zmq::socket_type::xpub);
      set_link_options(socket_, options_.link, *endpoint);
      set_server_keys(socket_, options_.keys);
      // All that comes in are subscriptions, each of which is told.
      socket_.set(zmq::sockopt::maxmsgsize, longest_subscription);
      socket_.set(zmq::sockopt::xpub_verbose, true);
      connections_.emplace(context_, socket_);
      auto bound = bind_socket(socket_, *endpoint);
      if (!bound) return bound.error();
      bound_ = *bound;
    } catch (const zmq::error_t& error) {
      return Error{options_.endpoint + ": " + error.what()};
    }
    thread_ = std::thread([this] { run(); });
    return Done{};
  }

  Status publish(Message event) {
    // The numbers are those of the order in which the events leave.
    const std::lock_guard lock(publishing_);
    event.ack = 0;
    // An event that cannot leave leaves a gap, by which listeners know of it.
    event.seq = numbers_.next(event.run);
    auto parts = encode(event);
    if (!parts) return parts.error();
    parts->insert(parts->begin(), topic_of(event));
    const auto bytes = bytes_of(*parts);
    if (queue_.push(std::move(*parts), bytes)) return Done{};
    return Error{event.type + ": " + std::to_string(options_.link.queue) + " events or " +
                 std::to_string(options_.link.queue_bytes) + " bytes wait to leave " + bound_ +
                 " already"};
  }

  const std::string& endpoint() const { return bound_; }
  const Counters& counters() const { return counters_; }

 private:
  void run() {
    block_signals();
    std::vector<zmq_pollitem_t> items = {
        {socket_.handle(), 0, ZMQ_POLLIN, 0},
        {connections_->socket().handle(), 0, ZMQ_POLLIN, 0},
        {zap_.handle(), 0, ZMQ_POLLIN, 0},
        {nullptr, queue_.wake().descriptor(), ZMQ_POLLIN, 0},
    };
    while (!stop_) {
      wait_for(items, until(connections_->next_look(), Clock::now()));
      while (answer_next(zap_, options_.allowed, [this](const ZapAnswer& answer) {
        counters_.add(Count::unknown_key);
        tell_refused(answer.address, answer.refused);
      })) {
      }
      follow_connections();
      int read = 0;
      while (read < fair_share && receive()) ++read;
      if (read < fair_share)
        for (const auto& connection : connections_->endless(Clock::now()))
          shut(connection.descriptor, connection.far_end);
      for (const auto& parts : queue_.take())
        if (send_parts(socket_, std::nullopt, parts) == 0) counters_.add(Count::sent);
    }
  }

  void follow_connections() {
    while (const auto news = connections_->next()) switch (news->what) {
        case Connections::What::ended:
          if (connections_->silent(news->connection)) counters_.add(Count::failed_connection);
          connections_->forget(news->connection);
          subscriptions_.erase(news->connection.number);
          break;
        case Connections::What::not_accepted:
          tell_refused("", "cannot accept a connection: " + news->why);
          break;
      }
  }

  /// A first byte of 1 subscribes, one of 0 takes that back.
  bool receive() {
    if (!parts_.receive(socket_, 1)) return false;
    const auto text = parts_[0];
    const auto connection = connections_->find(parts_.descriptor());
    connections_->heard(parts_.descriptor());
    const bool subscribes = text.starts_with('\1');
    if (subscribes || text.starts_with('\0')) {
      // ZeroMQ itself takes back what one who is gone had subscribed to.
      if (!subscribes || connection.number == 0) return true;
      if (++subscriptions_[connection.number] <= options_.subscriptions) {
        if (events_.subscribed) events_.subscribed(std::string(text.substr(1)));
        return true;
      }
    }
    counters_.add(Count::malformed);
    if (connection.number == 0) return true;
    counters_.add(Count::struck_off);
    tell_refused(connection.far_end, "subscribes too often, or says what is no subscription");
    shut(connection.descriptor, connection.far_end);
    return true;
  }

  void tell_refused(const std::string& address, const std::string& why) {
    const auto host = address.substr(0, address.rfind(':'));
    if (events_.refused && telling_.admit(host, Clock::now())) events_.refused(address, why);
  }

  PublisherOptions options_;
  PublisherEvents events_;
  Counters counters_;
  Handover<std::vector<std::string>> queue_;
  std::atomic<bool> stop_ = false;
  std::string bound_;
  std::mutex publishing_;
  RunNumbers numbers_;  // Of who publishes.

  // The context outlives its sockets.
  zmq::context_t context_{1};
  zmq::socket_t socket_;
  zmq::socket_t zap_;
  std::optional<Connections> connections_;

  // From here on the thread's own.
  Parts parts_;
  std::map<std::uint64_t, int> subscriptions_;  // By the number of the connection.
  RateLimit telling_;

  std::thread thread_;
};

Publisher::Publisher(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
Publisher::~Publisher() = default;

Result<std::unique_ptr<Publisher>> Publisher::bind(PublisherOptions options,
                                                   PublisherEvents events) {
  auto loop = std::make_unique<Loop>(std::move(options), std::move(events));
  if (auto started = loop->start(); !started) return started.error();
  return std::unique_ptr<Publisher>(new Publisher(std::move(loop)));
}

const std::string& Publisher::endpoint() const { return loop_->endpoint(); }
Status Publisher::publish(Message event) { return loop_->publish(std::move(event)); }
const Counters& Publisher::counters() const { return loop_->counters(); }

}  // namespace troupe::transport
