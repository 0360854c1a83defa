#include "transport/control/publisher.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "core/threads/thread_name.h"
#include "core/units.h"
#include "transport/control/listening_socket.h"
#include "transport/control/zmq_sockets.h"

namespace troupe::transport {
namespace {

using Clock = std::chrono::steady_clock;

/// Room for a topic, which has a run's name and a type. It cannot be less, since this limit also
/// applies to handshakes with keys.
constexpr std::int64_t longest_subscription = 1024;
/// The most subscriptions that are read from a connection before their total is checked.
constexpr int subscriptions_at_once = 16;
/// Runs with counters; the longest silent one is dropped and would start from 1.
constexpr std::size_t most_numbered_runs = 4096;
/// How long the last events may take to leave after the publisher has ended.
constexpr auto leave_patience = std::chrono::milliseconds(500);

class ZmqPublisher final : public Publisher {
 public:
  ZmqPublisher(PublisherOptions options, PublisherEvents events)
      : options_(std::move(options)),
        events_(std::move(events)),
        queue_(options_.link),
        listening_({options_.endpoint, options_.link, options_.keys, options_.allowed},
                   events_.refused) {}
  ~ZmqPublisher() override {
    stop_ = true;
    queue_.wake().ring();
    if (thread_.joinable()) thread_.join();
  }

  Status open() {
    auto opened = listening_.open(zmq::socket_type::xpub, [](zmq::socket_t& socket) {
      // The socket receives only subscriptions, and reports each of them.
      socket.set(zmq::sockopt::maxmsgsize, longest_subscription);
      socket.set(zmq::sockopt::rcvhwm, subscriptions_at_once);
      // A subscription takes effect only after receive() has checked it.
      socket.set(zmq::sockopt::xpub_manual, true);
    });
    if (!opened) return opened;
    thread_ = std::thread([this] { run(); });
    return Done{};
  }

  Status publish(Message event) override {
    // The lock makes the numbers follow the order of sending.
    const std::lock_guard lock(publishing_);
    event.ack = 0;
    // An event that cannot be sent leaves a gap that listeners notice.
    event.seq = numbers_.next(event.run);
    auto frame = encode_event(event);
    if (!frame) return frame.error();
    const auto bytes = frame->size();
    if (queue_.push({std::move(*frame)}, bytes)) return Done{};
    return Error{event.type + ": " + std::to_string(options_.link.queue) + " events or " +
                 size_text(options_.link.queue_bytes) + " wait to leave " + endpoint() +
                 " already"};
  }

  void allow(AllowList allowed) override {
    {
      const std::lock_guard lock(publishing_);
      new_list_ = std::move(allowed);
    }
    queue_.wake().ring();
  }

  const std::string& endpoint() const override { return listening_.endpoint(); }
  const Counters& counters() const override { return counters_; }

 private:
  void run() {
    name_thread("publisher");
    block_signals();
    auto items = listening_.items();
    items.push_back({nullptr, queue_.wake().descriptor(), ZMQ_POLLIN, 0});
    while (!stop_) {
      wait_for(items, until(listening_.connections().next_look(), Clock::now()));
      take_new_list();
      listening_.let_in(counters_);
      follow_connections();
      int read = 0;
      while (read < fair_share && receive()) ++read;
      if (read < fair_share)
        for (const auto& connection : listening_.connections().endless(Clock::now()))
          shut(connection.descriptor, connection.far_end);
      send_all();
    }
    // The last events tell why nothing follows.
    listening_.socket().set(zmq::sockopt::linger, static_cast<int>(leave_patience.count()));
    send_all();
  }

  void send_all() {
    for (const auto& parts : queue_.take())
      if (send_parts(listening_.socket(), std::nullopt, parts) == 0) counters_.add(Count::sent);
  }

  void take_new_list() {
    std::optional<AllowList> allowed;
    {
      const std::lock_guard lock(publishing_);
      allowed = std::exchange(new_list_, std::nullopt);
    }
    if (!allowed) return;
    options_.allowed = std::move(*allowed);
    for (const auto& [_, listener] : listeners_)
      if (!options_.allowed.find(listener.key))
        shut(listener.connection.descriptor, listener.connection.far_end);
  }

  void follow_connections() {
    while (const auto news = listening_.connections().next()) switch (news->what) {
        case Connections::What::ended:
          if (listening_.connections().silent(news->connection))
            counters_.add(Count::failed_connection);
          listening_.connections().forget(news->connection);
          listeners_.erase(news->connection.number);
          break;
        case Connections::What::foreign:
          counters_.add(Count::other_user);
          listening_.tell_refused(news->connection.far_end, news->why);
          break;
        case Connections::What::crowded_out:
          counters_.add(Count::crowded_out);
          listening_.tell_refused(news->connection.far_end, news->why);
          break;
        case Connections::What::not_accepted:
          listening_.tell_refused("", "cannot accept a connection: " + news->why);
          break;
      }
  }

  /// Handles a subscription (first byte 1) or its end (first byte 0).
  bool receive() {
    if (!parts_.receive(listening_.socket(), 1)) {
      listening_.connections().all_read();
      return false;
    }
    const auto text = parts_[0];
    const bool subscribes = text.starts_with('\1');
    // ZeroMQ itself ends the subscriptions of a lost listener.
    if (text.starts_with('\0')) {
      listening_.socket().set(zmq::sockopt::unsubscribe, std::string(text.substr(1)));
      return true;
    }
    const auto connection = listening_.connections().find(parts_.descriptor());
    if (connection.number == 0) return true;
    if (listening_.connections().is_in_doubt(connection.descriptor)) {
      shut(connection.descriptor, connection.far_end);
      return true;
    }
    listening_.connections().heard(parts_.descriptor());
    listening_.connections().admitted(connection);
    // Much may arrive before a shut connection ends. ZeroMQ reads it as fast as it comes, so it
    // must be skipped quickly.
    auto& listener = listeners_[connection.number];
    listener.connection = connection;
    listener.key = parts_.property("User-Id");
    auto& bytes = listener.bytes;
    if (bytes > options_.topic_bytes) return true;
    bytes = subscribes ? bytes + text.size() : options_.topic_bytes + 1;
    if (bytes <= options_.topic_bytes) {
      listening_.socket().set(zmq::sockopt::subscribe, std::string(text.substr(1)));
      if (events_.subscribed) events_.subscribed(std::string(text.substr(1)));
      return true;
    }
    counters_.add(Count::malformed);
    counters_.add(Count::struck_off);
    listening_.tell_refused(connection.far_end,
                            "subscribes to too much, or says what is no subscription");
    shut(connection.descriptor, connection.far_end);
    return true;
  }

  PublisherOptions options_;
  PublisherEvents events_;
  Counters counters_;
  Handover<std::vector<std::string>> queue_;
  std::atomic<bool> stop_ = false;
  std::mutex publishing_;
  std::optional<AllowList> new_list_;
  RunNumbers numbers_;  // Guarded by publishing_.

  // The members below belong to the thread.
  ListeningSocket listening_;
  Parts parts_;
  struct Listener {
    Connection connection;
    std::string key;
    std::size_t bytes = 0;  // Bytes of its topics.
  };
  std::map<std::uint64_t, Listener> listeners_;  // Keyed by connection number.

  std::thread thread_;
};

}  // namespace

std::uint64_t RunNumbers::next(const std::string& run) {
  ++clock_;
  if (!last_.contains(run) && last_.size() >= most_numbered_runs)
    last_.erase(
        std::ranges::min_element(last_, {}, [](const auto& entry) { return entry.second.used; }));
  auto& entry = last_[run];
  entry.used = clock_;
  return ++entry.seq;
}

Result<std::unique_ptr<Publisher>> bind_publisher(PublisherOptions options,
                                                  PublisherEvents events) {
  auto publisher = std::make_unique<ZmqPublisher>(std::move(options), std::move(events));
  if (auto opened = publisher->open(); !opened) return opened.error();
  return std::unique_ptr<Publisher>(std::move(publisher));
}

}  // namespace troupe::transport
