#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "core/threads/event_fd.h"
#include "core/threads/thread_name.h"
#include "core/units.h"
#include "transport/control/control_peers.h"
#include "transport/control/delivery.h"
#include "transport/control/listening_socket.h"
#include "transport/control/loop_delivery.h"
#include "transport/control/zmq_sockets.h"

namespace troupe::transport {
namespace {

using Clock = std::chrono::steady_clock;

/// Requests of callers to the thread.
struct Outgoing {
  PeerId peer;
  std::vector<std::string> parts;
};
struct Cut {
  PeerId peer;
  std::string why;
};
struct Strike {
  PeerId peer;
  std::string why;
};
struct Allow {
  AllowList allowed;
};
using Order = std::variant<Outgoing, Cut, Strike, Allow>;

class ZmqServer final : public ControlServer, private ControlPeers::Socket {
 public:
  ZmqServer(ServerOptions options, ServerEvents events, Loop& loop)
      : options_(std::move(options)),
        events_(std::move(events)),
        delivery_(loop, options_.link, [this] { room_.ring(); }),
        orders_(options_.link, options_.link.queue),
        peers_(options_, passed_on(), counters_, *this),
        listening_({options_.endpoint, options_.link, options_.keys, peers_.allowed()},
                   delivered(events_, delivery_).refused) {}
  ~ZmqServer() override {
    delivery_.stop();
    stop_ = true;
    orders_.wake().ring();
    if (thread_.joinable()) thread_.join();
  }

  Status open() {
    auto opened = listening_.open(zmq::socket_type::router, [this](zmq::socket_t& socket) {
      socket.set(zmq::sockopt::router_mandatory, true);
      socket.set(zmq::sockopt::backlog, options_.backlog);
    });
    if (!opened) return opened;
    thread_ = std::thread([this] { run(); });
    return Done{};
  }

  void start() override { delivery_.start(); }

  const std::string& endpoint() const override { return listening_.endpoint(); }
  const Counters& counters() const override { return counters_; }

  Status send(PeerId peer, const Message& message) override {
    auto parts = encode(message);
    if (!parts) return parts.error();
    const auto bytes = bytes_of(*parts);
    return taken(orders_.push(Outgoing{peer, std::move(*parts)}, bytes));
  }
  Status cut(PeerId peer, std::string why) override {
    return taken(orders_.push_order(Cut{peer, std::move(why)}));
  }
  Status strike(PeerId peer, std::string why) override {
    return taken(orders_.push_order(Strike{peer, std::move(why)}));
  }
  Status allow(AllowList allowed) override {
    return taken(orders_.push_order(Allow{.allowed = std::move(allowed)}));
  }

 private:
  Status taken(bool is_taken) const {
    if (is_taken) return Done{};
    return Error{endpoint() + ": " + std::to_string(options_.link.queue) + " orders or " +
                 size_text(options_.link.queue_bytes) + " wait for this socket already"};
  }

  /// Returns callbacks for the sessions, which pass everything on to the loop.
  ServerEvents passed_on() {
    auto events = delivered(events_, delivery_);
    events.refused = [this](const std::string& address, const std::string& why) {
      listening_.tell_refused(address, why);
    };
    return events;
  }

  void run() {
    name_thread("control");
    block_signals();
    auto all_items = listening_.items();
    const std::vector<zmq_pollitem_t> own_items = {
        {nullptr, orders_.wake().descriptor(), ZMQ_POLLIN, 0},
        {nullptr, room_.descriptor(), ZMQ_POLLIN, 0}};
    all_items.insert(all_items.end(), own_items.begin(), own_items.end());
    while (!stop_) {
      // Until the callbacks have caught up, it only follows orders.
      if (delivery_.is_full()) {
        auto items = own_items;
        wait_for(items, until(peers_.next_duty(), Clock::now()));
      } else {
        wait_for(all_items, until(next_duty(), Clock::now()));
      }
      room_.clear();
      now_ = Clock::now();
      peers_.set_time(now_);
      const bool reads = !delivery_.is_full();
      int read = 0;
      if (reads) {
        listening_.let_in(counters_);
        follow_connections();
        while (read < fair_share && receive()) ++read;
      }
      follow_orders();
      if (reads && read < fair_share) end_endless();
    }
  }

  bool receive() {
    if (!parts_.receive(listening_.socket(), 1 + most_parts_kept)) {
      listening_.connections().all_read();
      return false;
    }
    const ControlPeers::Route from(parts_[0]);
    if (!peers_.has_session(from)) {
      // Messages after a rejection cost only these look-ups.
      if (peers_.is_rejected(from) || is_in_doubt()) return true;
    }
    listening_.connections().heard(parts_.descriptor());
    peers_.hear(from, parts_.from(1), parts_.all_kept());
    return true;
  }

  /// Returns whether the sender's connection may be another user's, and ends it if so.
  bool is_in_doubt() {
    const auto sender = listening_.connections().find(parts_.descriptor());
    if (!listening_.connections().is_in_doubt(parts_.descriptor())) return false;
    counters_.add(Count::before_hello);
    shut(sender);  // A peer of this user dials again after a while.
    return true;
  }

  std::optional<TimePoint> next_duty() {
    const auto look = listening_.connections().next_look();
    const auto duty = peers_.next_duty();
    return look && duty ? std::min(look, duty) : look ? look : duty;
  }

  // The functions below follow connections, which a ROUTER socket does not report.

  void follow_connections() {
    while (const auto news = listening_.connections().next()) switch (news->what) {
        case Connections::What::ended:
          lose(news->connection);
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

  void end_endless() {
    for (const auto& connection : listening_.connections().endless(now_)) {
      counters_.add(Count::malformed);
      listening_.tell_refused(connection.far_end, "sends parts of a message without end");
      shut(connection);
    }
  }

  void lose(const Connection& connection) {
    // Its last messages may still wait to be read.
    for (int i = 0; i < last_words && receive(); ++i) {
    }
    if (listening_.connections().silent(connection)) counters_.add(Count::failed_connection);
    listening_.connections().forget(connection);
    peers_.lost(connection);
  }

  void follow_orders() {
    for (auto& order : orders_.take()) {
      if (auto* allow = std::get_if<Allow>(&order))
        peers_.allow(std::move(allow->allowed));
      else if (const auto* outgoing = std::get_if<Outgoing>(&order))
        peers_.send(outgoing->peer, outgoing->parts);
      else if (const auto* cut = std::get_if<Cut>(&order))
        peers_.cut(cut->peer, cut->why);
      else if (const auto* struck = std::get_if<Strike>(&order))
        peers_.strike(struck->peer, struck->why);
    }
  }

  // The functions below act for the sessions.

  ControlPeers::Origin origin() override {
    return {listening_.connections().find(parts_.descriptor()), parts_.property("User-Id")};
  }
  Sent send(const ControlPeers::Route& to, const std::vector<std::string>& parts) override {
    const int error = send_parts(listening_.socket(), to, parts);
    return error == 0 ? Sent::yes : error == EAGAIN ? Sent::full : Sent::gone;
  }
  void shut(const Connection& connection) override {
    transport::shut(connection.descriptor, connection.far_end);
  }
  void admitted(const Connection& connection) override {
    listening_.connections().admitted(connection);
  }

  ServerOptions options_;
  ServerEvents events_;
  Counters counters_;
  EventFd room_;
  LoopDelivery delivery_;
  Handover<Order> orders_;
  std::atomic<bool> stop_ = false;

  // The members below belong to the thread.
  ControlPeers peers_;
  ListeningSocket listening_;
  TimePoint now_ = Clock::now();
  Parts parts_;

  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<ControlServer>> bind_server(ServerOptions options, ServerEvents events,
                                                   Loop& loop) {
  auto server = std::make_unique<ZmqServer>(std::move(options), std::move(events), loop);
  if (auto opened = server->open(); !opened) return opened.error();
  return std::unique_ptr<ControlServer>(std::move(server));
}

}  // namespace troupe::transport
