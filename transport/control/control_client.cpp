#include <atomic>
#include <deque>
#include <thread>

#include "core/threads/thread_name.h"
#include "transport/control/control_socket.h"
#include "transport/control/dialer.h"
#include "transport/control/zmq_parts.h"

namespace troupe::transport {
namespace {

/// The parts of a message: three, the payload, and one more to detect an excess.
constexpr std::size_t most_parts = 3 + 8 + 1;
/// A connection with this many bad messages is ended.
constexpr int most_bad_messages = 10;

}  // namespace

class ControlClient::Loop {
 public:
  Loop(DialOptions options, ClientEvents events)
      : options_(std::move(options)),
        events_(std::move(events)),
        orders_(options_.link),
        dialer_(context_, options_, zmq::socket_type::dealer, [](zmq::socket_t&) {}) {}
  ~Loop() {
    stop_ = true;
    orders_.wake().ring();
    if (thread_.joinable()) thread_.join();
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  Status start() {
    if (auto possible = dialer_.check(); !possible) return possible;
    thread_ = std::thread([this] { run(); });
    return Done{};
  }

  Status send(const Message& message) {
    auto parts = encode(message);
    if (!parts) return parts.error();
    if (!connected_)
      return Error{message.type + ": there is no connection to " + options_.endpoint};
    const auto bytes = bytes_of(*parts);
    if (orders_.push(std::move(*parts), bytes)) return Done{};
    return Error{message.type + ": " + std::to_string(options_.link.queue) + " messages or " +
                 std::to_string(options_.link.queue_bytes) + " bytes wait to be sent to " +
                 options_.endpoint + " already"};
  }

  const Counters& counters() const { return counters_; }

 private:
  void run() {
    name_thread("control");
    block_signals();
    while (!stop_) {
      std::vector<zmq_pollitem_t> items = {{nullptr, orders_.wake().descriptor(), ZMQ_POLLIN, 0}};
      dialer_.wait_for_news(items);
      if (auto* socket = dialer_.socket()) {
        const int events = ZMQ_POLLIN | (waiting_.empty() ? 0 : ZMQ_POLLOUT);
        items.push_back({socket->handle(), 0, static_cast<short>(events), 0});
      }
      wait_for(items, dialer_.patience());

      follow_dialer();
      for (int i = 0; i < fair_share && dialer_.connected() && receive(); ++i) {
      }
      follow_orders();
    }
  }

  void follow_dialer() {
    while (const auto news = dialer_.next()) switch (news->what) {
        case Dialer::What::connected:
          connected_ = true;
          if (events_.connected) events_.connected();
          break;
        case Dialer::What::failed:
          counters_.add(Count::failed_connection);
          if (events_.refused) events_.refused(news->why);
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
    if (!parts_.receive(*dialer_.socket(), most_parts)) return false;
    auto message =
        parts_.all_kept()
            ? decode(parts_.from(0))
            : Error{"found a message of more than " + std::to_string(most_parts - 1) + " parts"};
    if (!message) {
      bad(Count::malformed, message.error().text);
    } else if (!find_message_type(message->type)) {
      counters_.add(Count::unknown_type);
    } else if (!may_send({Role::head}, message->type)) {
      bad(Count::wrong_role, message->type + ": a head does not say this");
    } else {
      dialer_.succeed();
      counters_.add(Count::received);
      if (events_.message) events_.message(std::move(*message));
    }
    return true;
  }

  void bad(Count count, const std::string& why) {
    counters_.add(count);
    if (bad_messages_++ == 0 && events_.refused) events_.refused(why);
    if (bad_messages_ < most_bad_messages) return;
    counters_.add(Count::struck_off);
    end(Gone::struck_off,
        "it sent " + std::to_string(most_bad_messages) + " bad messages; the last was: " + why);
  }

  void follow_orders() {
    auto orders = orders_.take();
    if (!dialer_.connected()) return;
    for (auto& parts : orders) waiting_.push_back(std::move(parts));
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
    connected_ = false;
    dialer_.hang_up();
    orders_.take();
    waiting_.clear();
    taken_ = false;
    bad_messages_ = 0;
    if (events_.gone) events_.gone(gone, why);
  }

  DialOptions options_;
  ClientEvents events_;
  Counters counters_;
  Handover<std::vector<std::string>> orders_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> connected_ = false;

  // The context must outlive its sockets.
  zmq::context_t context_{1};

  // The members below belong to the thread.
  Dialer dialer_;
  Parts parts_;
  std::deque<std::vector<std::string>> waiting_;  // Messages that the socket does not take yet.
  bool taken_ = false;    // The socket has taken a message on this connection.
  int bad_messages_ = 0;  // On this connection.

  std::thread thread_;
};

ControlClient::ControlClient(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
ControlClient::~ControlClient() = default;

Result<std::unique_ptr<ControlClient>> ControlClient::dial(DialOptions options,
                                                           ClientEvents events) {
  auto loop = std::make_unique<Loop>(std::move(options), std::move(events));
  if (auto started = loop->start(); !started) return started.error();
  return std::unique_ptr<ControlClient>(new ControlClient(std::move(loop)));
}

Status ControlClient::send(const Message& message) { return loop_->send(message); }
const Counters& ControlClient::counters() const { return loop_->counters(); }

}  // namespace troupe::transport
