#include <atomic>
#include <thread>

#include "core/threads/event_fd.h"
#include "core/threads/thread_name.h"
#include "transport/control/delivery.h"
#include "transport/control/dialer.h"
#include "transport/control/dialing_end.h"
#include "transport/control/loop_delivery.h"
#include "transport/control/zmq_parts.h"
#include "transport/control/zmq_sockets.h"
#include "transport/wire/event_frame.h"

namespace troupe::transport {
namespace {

class ZmqSubscriber final : public Subscriber {
 public:
  ZmqSubscriber(const DialOptions& options, std::string topic, SubscriberEvents events, Loop& loop)
      : topic_(std::move(topic)),
        events_(std::move(events)),
        delivery_(loop, options.link, [this] { room_.ring(); }),
        dialer_(context_, options, zmq::socket_type::sub,
                [this](zmq::socket_t& socket) { socket.set(zmq::sockopt::subscribe, topic_); }) {}
  ~ZmqSubscriber() override {
    delivery_.stop();
    stop_ = true;
    wake_.ring();
    if (thread_.joinable()) thread_.join();
  }

  Status start() {
    if (auto possible = dialer_.check(); !possible) return possible;
    delivery_.start();
    thread_ = std::thread([this] { run(); });
    return Done{};
  }

  const Counters& counters() const override { return counters_; }

 private:
  void run() {
    name_thread("subscriber");
    block_signals();
    while (!stop_) {
      std::vector<zmq_pollitem_t> items = {{nullptr, wake_.descriptor(), ZMQ_POLLIN, 0},
                                           {nullptr, room_.descriptor(), ZMQ_POLLIN, 0}};
      // It reads nothing until the callbacks have caught up.
      const bool listens = !delivery_.is_full();
      if (listens) {
        dialer_.wait_for_news(items);
        if (auto* socket = dialer_.socket()) items.push_back({socket->handle(), 0, ZMQ_POLLIN, 0});
      }
      wait_for(items, listens ? dialer_.patience() : std::chrono::milliseconds(-1));
      room_.clear();
      if (!listens) continue;

      follow_dialer();
      for (int i = 0; i < fair_share && dialer_.connected() && receive(); ++i) {
      }
    }
  }

  void follow_dialer() {
    while (const auto news = dialer_.next()) switch (news->what) {
        case Dialer::What::connected:
          if (events_.connected) delivery_.add(0, [this] { events_.connected(); });
          break;
        case Dialer::What::failed:
          counters_.add(Count::failed_connection);
          tell_refused(news->why);
          break;
        case Dialer::What::ended:
          for (int i = 0; i < last_words && receive(); ++i) {
          }
          dialer_.hang_up();
          if (events_.gone)
            delivery_.add(news->why.size(), [this, why = news->why] { events_.gone(why); });
          break;
      }
  }

  bool receive() {
    if (!parts_.receive(*dialer_.socket(), 1)) return false;
    auto event = parts_.all_kept()
                     ? decode_event(parts_[0])
                     : Result<Message>(Error{"event: found several parts, wanted one"});
    if (!event) {
      counters_.add(Count::malformed);
      tell_refused(event.error().text);
    } else if (!find_message_type(event->type)) {
      counters_.add(Count::unknown_type);
    } else {
      dialer_.succeed();
      counters_.add(Count::received);
      count(*event);
      if (events_.event) {
        const auto bytes = bytes_of(*event);
        delivery_.add(bytes, [this, event = std::move(*event)]() mutable {
          events_.event(std::move(event));
        });
      }
    }
    return true;
  }

  void tell_refused(const std::string& why) {
    if (events_.refused) delivery_.add(why.size(), [this, why] { events_.refused(why); });
  }

  void count(const Message& event) {
    const auto count = missed_.before(event);
    if (count == 0 || !events_.missed) return;
    delivery_.add(event.run.size(), [this, run = event.run, count] { events_.missed(run, count); });
  }

  std::string topic_;
  SubscriberEvents events_;
  EventFd room_;
  LoopDelivery delivery_;
  Counters counters_;
  EventFd wake_;
  std::atomic<bool> stop_ = false;

  // The context must outlive its sockets.
  zmq::context_t context_{1};

  // The members below belong to the thread.
  Dialer dialer_;
  Parts parts_;
  MissedEvents missed_{topic_};

  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Subscriber>> dial_publisher(DialOptions options, std::string topic,
                                                   SubscriberEvents events, Loop& loop) {
  auto subscriber =
      std::make_unique<ZmqSubscriber>(options, std::move(topic), std::move(events), loop);
  if (auto started = subscriber->start(); !started) return started.error();
  return std::unique_ptr<Subscriber>(std::move(subscriber));
}

}  // namespace troupe::transport
