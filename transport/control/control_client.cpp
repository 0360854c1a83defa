#include <atomic>
#include <deque>
#include <thread>

#include "core/threads/event_fd.h"
#include "core/threads/thread_name.h"
#include "core/units.h"
#include "transport/control/delivery.h"
#include "transport/control/dialer.h"
#include "transport/control/dialing_end.h"
#include "transport/control/loop_delivery.h"
#include "transport/control/zmq_parts.h"
#include "transport/control/zmq_sockets.h"

namespace troupe::transport {
namespace {

class ZmqClient final : public ControlClient {
 public:
  ZmqClient(DialOptions options, ClientEvents events, Loop& loop)
      : options_(std::move(options)),
        events_(std::move(events)),
        delivery_(loop, options_.link, [this] { room_.ring(); }),
        orders_(options_.link),
        dialer_(context_, options_, zmq::socket_type::dealer, [](zmq::socket_t&) {}) {}
  ~ZmqClient() override {
    delivery_.stop();
    stop_ = true;
    orders_.wake().ring();
    if (thread_.joinable()) thread_.join();
  }

  Status check() { return dialer_.check(); }

  void start() override {
    delivery_.start();
    thread_ = std::thread([this] { run(); });
  }

  Status send(const Message& message) override {
    auto parts = encode(message);
    if (!parts) return parts.error();
    const auto connection = told_.load();
    if (connection == 0 || connection != connection_)
      return Error{message.type + ": there is no connection to " + options_.endpoint};
    const auto bytes = bytes_of(*parts);
    if (orders_.push({connection, std::move(*parts)}, bytes)) return Done{};
    return Error{message.type + ": " + std::to_string(options_.link.queue) + " messages or " +
                 size_text(options_.link.queue_bytes) + " wait to be sent to " + options_.endpoint +
                 " already"};
  }

  const Counters& counters() const override { return counters_; }

 private:
  struct Order {
    std::uint64_t connection = 0;
    std::vector<std::string> parts;
  };

  void run() {
    name_thread("control");
    block_signals();
    while (!stop_) {
      std::vector<zmq_pollitem_t> items = {{nullptr, orders_.wake().descriptor(), ZMQ_POLLIN, 0},
                                           {nullptr, room_.descriptor(), ZMQ_POLLIN, 0}};
      // Until the callbacks have caught up, it only sends.
      const bool listens = !delivery_.is_full();
      if (listens) dialer_.wait_for_news(items);
      if (auto* socket = dialer_.socket()) {
        const int events = (listens ? ZMQ_POLLIN : 0) | (waiting_.empty() ? 0 : ZMQ_POLLOUT);
        items.push_back({socket->handle(), 0, static_cast<short>(events), 0});
      }
      wait_for(items, listens ? dialer_.patience() : std::chrono::milliseconds(-1));

      room_.clear();
      if (listens) {
        follow_dialer();
        for (int i = 0; i < fair_share && dialer_.connected() && receive(); ++i) {
        }
      }
      follow_orders();
    }
  }

  void follow_dialer() {
    while (const auto news = dialer_.next()) switch (news->what) {
        case Dialer::What::connected:
          connection_ = ++connections_;
          delivery_.add(0, [this, connection = connections_] {
            told_ = connection;
            if (events_.connected) events_.connected();
          });
          break;
        case Dialer::What::failed:
          counters_.add(Count::failed_connection);
          passing_.refused(news->why);
          break;
        case Dialer::What::ended:
          // The head's last messages may still wait to be read.
          for (int i = 0; i < last_words && dialer_.socket() && receive(); ++i) {
          }
          if (dialer_.socket()) end(Gone::closed, news->why);
          break;
      }
  }

  bool receive() {
    if (!parts_.receive(*dialer_.socket(), most_parts_of_message)) return false;
    auto verdict = head_.hear(parts_.from(0), parts_.all_kept());
    switch (verdict.what) {
      case HeadMessages::What::good:
        dialer_.succeed();
        passing_.message(std::move(verdict.message));
        break;
      case HeadMessages::What::unknown:
        // Otherwise the head takes nothing any more.
        if (waiting_.size() < options_.link.queue)
          if (auto parts = encode(verdict.message)) waiting_.push_back(std::move(*parts));
        break;
      case HeadMessages::What::bad:
        if (!verdict.why.empty()) passing_.refused(verdict.why);
        break;
      case HeadMessages::What::too_bad:
        if (!verdict.why.empty()) passing_.refused(verdict.why);
        end(Gone::struck_off, verdict.end);
        break;
    }
    return true;
  }

  void follow_orders() {
    auto orders = orders_.take();
    if (!dialer_.connected()) return;
    for (auto& order : orders)
      if (order.connection == connections_) waiting_.push_back(std::move(order.parts));
    while (!waiting_.empty() &&
           send_parts(*dialer_.socket(), std::nullopt, waiting_.front()) == 0) {
      taken_ = true;
      counters_.add(Count::sent);
      waiting_.pop_front();
    }
    // Right after the handshake the socket may not know yet that it is connected.
    const bool may_begin_soon = !taken_ && waiting_.size() <= options_.link.queue;
    if (waiting_.empty() || may_begin_soon) return;
    counters_.add(Count::too_slow);
    end(Gone::too_slow, options_.endpoint + " let more than " +
                            std::to_string(options_.link.high_water) + " messages come together");
  }

  void end(Gone gone, const std::string& why) {
    connection_ = 0;
    dialer_.hang_up();
    orders_.take();
    waiting_.clear();
    taken_ = false;
    head_.begin();
    passing_.gone(gone, why);
  }

  DialOptions options_;
  ClientEvents events_;
  Counters counters_;
  EventFd room_;
  LoopDelivery delivery_;
  const ClientEvents passing_ = delivered(events_, delivery_);
  Handover<Order> orders_;
  std::atomic<bool> stop_ = false;
  std::atomic<std::uint64_t> connection_ = 0;  // The number of the connection; 0: there is none.
  std::atomic<std::uint64_t> told_ = 0;        // The last connection that was reported.

  // The context must outlive its sockets.
  zmq::context_t context_{1};

  // The members below belong to the thread.
  Dialer dialer_;
  Parts parts_;
  std::uint64_t connections_ = 0;                 // How many there were so far.
  std::deque<std::vector<std::string>> waiting_;  // Messages that the socket does not take yet.
  bool taken_ = false;  // The socket has taken a message on this connection.
  HeadMessages head_{counters_};

  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<ControlClient>> dial_server(DialOptions options, ClientEvents events,
                                                   Loop& loop) {
  auto client = std::make_unique<ZmqClient>(std::move(options), std::move(events), loop);
  if (auto possible = client->check(); !possible) return possible.error();
  return std::unique_ptr<ControlClient>(std::move(client));
}

}  // namespace troupe::transport
