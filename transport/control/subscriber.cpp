#include <atomic>
#include <map>
#include <thread>

#include "core/threads/event_fd.h"
#include "core/threads/thread_name.h"
#include "transport/control/dialer.h"
#include "transport/control/publisher.h"
#include "transport/control/zmq_parts.h"

namespace troupe::transport {
namespace {

/// The parts of an event: topic, three, the payload, and one more to detect an excess.
constexpr std::size_t most_with_topic = 1 + 3 + 8 + 1;
constexpr std::size_t most_runs = 4096;

/// Returns whether the seqs of a topic's events have no gaps: it must cover whole runs.
bool is_whole(const std::string& topic) { return topic.empty() || topic.ends_with('/'); }

}  // namespace

class Subscriber::Loop {
 public:
  Loop(const DialOptions& options, std::string topic, SubscriberEvents events)
      : topic_(std::move(topic)),
        events_(std::move(events)),
        dialer_(context_, options, zmq::socket_type::sub,
                [this](zmq::socket_t& socket) { socket.set(zmq::sockopt::subscribe, topic_); }) {}
  ~Loop() {
    stop_ = true;
    wake_.ring();
    if (thread_.joinable()) thread_.join();
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  Status start() {
    if (auto possible = dialer_.check(); !possible) return possible;
    thread_ = std::thread([this] { run(); });
    return Done{};
  }

  const Counters& counters() const { return counters_; }

 private:
  void run() {
    name_thread("subscriber");
    block_signals();
    while (!stop_) {
      std::vector<zmq_pollitem_t> items = {{nullptr, wake_.descriptor(), ZMQ_POLLIN, 0}};
      dialer_.wait_for_news(items);
      if (auto* socket = dialer_.socket()) items.push_back({socket->handle(), 0, ZMQ_POLLIN, 0});
      wait_for(items, dialer_.patience());

      follow_dialer();
      for (int i = 0; i < fair_share && dialer_.connected() && receive(); ++i) {
      }
    }
  }

  void follow_dialer() {
    while (const auto news = dialer_.next()) switch (news->what) {
        case Dialer::What::connected:
          if (events_.connected) events_.connected();
          break;
        case Dialer::What::failed:
          counters_.add(Count::failed_connection);
          if (events_.refused) events_.refused(news->why);
          break;
        case Dialer::What::ended:
          for (int i = 0; i < last_words && receive(); ++i) {
          }
          dialer_.hang_up();
          if (events_.gone) events_.gone(news->why);
          break;
      }
  }

  bool receive() {
    if (!parts_.receive(*dialer_.socket(), most_with_topic)) return false;
    auto event = parts_.all_kept() ? decode(parts_.from(1)) : Error{"found too many parts"};
    if (event && topic_of(*event) != parts_[0])
      event = Error{event->type + ": has another topic than it says"};
    if (!event) {
      counters_.add(Count::malformed);
      if (events_.refused) events_.refused(event.error().text);
    } else if (!find_message_type(event->type)) {
      counters_.add(Count::unknown_type);
    } else {
      dialer_.succeed();
      counters_.add(Count::received);
      count(*event);
      if (events_.event) events_.event(std::move(*event));
    }
    return true;
  }

  void count(const Message& event) {
    if (!is_whole(topic_)) return;
    const auto [last, is_first] = last_.emplace(event.run, event.seq);
    // A number that goes back comes from another head.
    if (!is_first && event.seq > last->second + 1 && events_.missed)
      events_.missed(event.run, event.seq - last->second - 1);
    last->second = event.seq;
    if (last_.size() > most_runs) last_.clear();
  }

  std::string topic_;
  SubscriberEvents events_;
  Counters counters_;
  EventFd wake_;
  std::atomic<bool> stop_ = false;

  // The context must outlive its sockets.
  zmq::context_t context_{1};

  // The members below belong to the thread.
  Dialer dialer_;
  Parts parts_;
  std::map<std::string, std::uint64_t> last_;  // The seq of each run's last event.

  std::thread thread_;
};

Subscriber::Subscriber(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
Subscriber::~Subscriber() = default;

Result<std::unique_ptr<Subscriber>> Subscriber::dial(DialOptions options, std::string topic,
                                                     SubscriberEvents events) {
  auto loop = std::make_unique<Loop>(options, std::move(topic), std::move(events));
  if (auto started = loop->start(); !started) return started.error();
  return std::unique_ptr<Subscriber>(new Subscriber(std::move(loop)));
}

const Counters& Subscriber::counters() const { return loop_->counters(); }

}  // namespace troupe::transport
