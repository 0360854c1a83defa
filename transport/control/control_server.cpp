#include <algorithm>
#include <atomic>
#include <cassert>
#include <map>
#include <optional>
#include <thread>
#include <unordered_map>
#include <variant>

#include "core/threads/thread_name.h"
#include "transport/control/control_socket.h"
#include "transport/control/listening_socket.h"
#include "transport/wire/refusal.h"

namespace troupe::transport {
namespace {

using Clock = std::chrono::steady_clock;

/// The parts of a message: routing id, three, the payload, and one more to detect an excess.
constexpr std::size_t most_with_sender = 1 + 3 + 8 + 1;
/// The time that a rejected peer has to read the reason.
constexpr auto farewell = std::chrono::seconds(1);
constexpr std::size_t most_farewells = 1024;
struct Session {
  Peer peer;
  std::string routing_id;
  Connection connection;
};

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
  PeerId peer = 0;  // Not used.
  AllowList allowed;
};
using Order = std::variant<Outgoing, Cut, Strike, Allow>;

Message rejection(const std::string& reason, const std::string& found, const std::string& wanted) {
  Message message;
  message.type = "node.reject";
  message.body.set("reason", reason);
  message.body.set("found", found);
  message.body.set("wanted", wanted);
  return message;
}

/// Returns the answer to a message whose sender lacks the role.
Refusal not_entitled(const MessageType& type, const Roles& roles) {
  if (!type.from.meets(all_dialers))
    return refusal(RefusalCode::unsupported, "type",
                   "'" + std::string(type.name) + "' is nothing that this head does");
  return refusal(
      RefusalCode::forbidden, "type",
      "a key with the roles " + to_string(roles) + " may not send '" + std::string(type.name) + "'",
      "it takes the role " + to_string(type.from) + " in the head's list of hosts");
}

}  // namespace

class ControlServer::Loop {
 public:
  Loop(ServerOptions options, ServerEvents events)
      : options_(std::move(options)),
        events_(std::move(events)),
        orders_(options_.link),
        listening_({options_.endpoint, options_.link, options_.keys, options_.allowed},
                   events_.refused),
        strikes_(options_.strikes),
        hellos_(options_.hellos_of_address, options_.hellos) {}
  ~Loop() {
    stop_ = true;
    orders_.wake().ring();
    if (thread_.joinable()) thread_.join();
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  Status start() {
    auto opened = listening_.open(zmq::socket_type::router, [this](zmq::socket_t& socket) {
      socket.set(zmq::sockopt::router_mandatory, true);
      socket.set(zmq::sockopt::backlog, options_.backlog);
    });
    if (!opened) return opened;
    thread_ = std::thread([this] { run(); });
    return Done{};
  }

  const std::string& endpoint() const { return listening_.endpoint(); }
  const Counters& counters() const { return counters_; }

  Status order(Order order, std::size_t bytes) {
    if (orders_.push(std::move(order), bytes)) return Done{};
    return Error{endpoint() + ": " + std::to_string(options_.link.queue) + " orders or " +
                 std::to_string(options_.link.queue_bytes) + " bytes wait for this socket already"};
  }

 private:
  void run() {
    name_thread("control");
    block_signals();
    auto items = listening_.items();
    items.push_back({nullptr, orders_.wake().descriptor(), ZMQ_POLLIN, 0});
    while (!stop_) {
      wait_for(items, until(next_duty(), Clock::now()));
      now_ = Clock::now();
      listening_.let_in(counters_);
      follow_connections();
      int read = 0;
      while (read < fair_share && receive()) ++read;
      follow_orders();
      end_farewells();
      if (read < fair_share) end_endless();
    }
  }

  // The functions below handle incoming messages.

  bool receive() {
    if (!parts_.receive(listening_.socket(), most_with_sender)) {
      listening_.connections().all_read();
      return false;
    }
    const auto sender = listening_.connections().find(parts_.descriptor());
    listening_.connections().heard(parts_.descriptor());
    const std::string routing_id(parts_[0]);
    const auto found = sessions_.find(routing_id);
    Session* const session = found == sessions_.end() ? nullptr : &found->second;
    if (!session && listening_.connections().is_in_doubt(parts_.descriptor())) {
      counters_.add(Count::before_hello);
      shut(sender.descriptor, sender.far_end);  // A peer of this user dials again after a while.
      return true;
    }
    if (!session && farewells_.contains(routing_id)) return true;

    const auto parts = parts_.from(1);
    if (const auto prelude = read_prelude(parts.empty() ? "" : parts[0]);
        prelude && prelude->major != wire_major) {
      refuse_version(routing_id, session, *prelude);
      return true;
    }
    auto message = parts_.all_kept() ? decode(parts)
                                     : Error{"found a message of more than " +
                                             std::to_string(most_with_sender - 1) + " parts"};
    if (!message) {
      bad(routing_id, session, Count::malformed, message.error().text);
      return true;
    }
    const auto* type = find_message_type(message->type);
    if (!type) {
      counters_.add(Count::unknown_type);
      if (session)
        refuse(routing_id, *message,
               refusal(RefusalCode::unsupported, "type",
                       "'" + message->type + "' is nothing that this head does"));
      return true;
    }
    const Roles roles = session ? session->peer.roles : roles_of(parts_.property("User-Id"));
    if (!roles.meets(type->from)) {
      if (session) refuse(routing_id, *message, not_entitled(*type, roles));
      bad(routing_id, session, Count::wrong_role,
          message->type + ": a key with the roles " + to_string(roles) + " may not send this");
      return true;
    }
    if (session) {
      pass_on(session->peer, std::move(*message));
      return true;
    }
    if (type->session == MessageType::Session::opens)
      open_session(routing_id, std::move(*message));
    else
      counters_.add(Count::before_hello);
    return true;
  }

  void open_session(const std::string& routing_id, Message message) {
    const std::string key = parts_.property("User-Id");
    const auto connection = listening_.connections().find(parts_.descriptor());
    if (connection.number == 0) return;  // It has ended already.
    const std::string address = host_of(connection.far_end);
    const auto subject = subject_of(key, address, message.incarnation);
    if (const auto left = strikes_.quarantine_left(subject, now_)) {
      counters_.add(Count::quarantined);
      const auto seconds = std::chrono::ceil<std::chrono::seconds>(*left).count();
      reject(routing_id, connection,
             rejection("quarantined", "a peer that was struck off for what it sent",
                       "nothing from it for " + std::to_string(seconds) + " s"));
      listening_.tell_refused(
          address, "was struck off, and is quarantined for " + std::to_string(seconds) + " s more");
      return;
    }
    if (!hellos_.admit(address, now_)) {
      counters_.add(Count::too_many_hellos);
      listening_.tell_refused(address, "says hello too often");
      shut(connection.descriptor, connection.far_end);  // It dials again after a while.
      return;
    }

    Session session;
    session.peer.id = ++last_peer_;
    session.peer.address = connection.far_end;
    session.peer.key = key;
    session.peer.user = connection.user;
    if (const auto* host = options_.allowed.find(key)) session.peer.host = host->name;
    session.peer.roles = roles_of(key);
    session.peer.incarnation = message.incarnation;
    session.routing_id = routing_id;
    session.connection = connection;
    const auto& placed = sessions_.emplace(routing_id, std::move(session)).first->second;
    by_id_[placed.peer.id] = routing_id;
    // A hello that was read after its connection's end took the place of another peer.
    if (const auto other = by_connection_.find(connection.number); other != by_connection_.end())
      forget(other->second, Gone::closed, "its connection has ended");
    by_connection_[connection.number] = routing_id;
    listening_.connections().admitted(connection);
    if (events_.connected) events_.connected(placed.peer);
    pass_on(placed.peer, std::move(message));
  }

  void pass_on(const Peer& peer, Message message) {
    counters_.add(Count::received);
    if (events_.message) events_.message(peer, std::move(message));
  }

  // The functions below handle unwanted messages.

  /// Answers a request that the head refuses. A message without an id expects no answer.
  void refuse(const std::string& routing_id, const Message& question, const Refusal& why) {
    if (question.id == 0) return;
    Message answer = to_message(why);
    answer.re = question.id;
    const auto parts = encode(answer);
    if (parts && send_parts(listening_.socket(), routing_id, *parts) == 0)
      counters_.add(Count::sent);
  }

  void bad(const std::string& routing_id, const Session* session, Count count,
           const std::string& why) {
    counters_.add(count);
    const auto connection =
        session ? session->connection : listening_.connections().find(parts_.descriptor());
    listening_.tell_refused(connection.far_end, why);
    if (session) {
      strike(*session, why);
      return;
    }
    // A strike is the only state that a stranger causes.
    const auto subject = subject_of(parts_.property("User-Id"), host_of(connection.far_end), 0);
    if (strikes_.strike(subject, now_) == Strikes::Verdict::noted) return;
    counters_.add(Count::struck_off);
    say_farewell(routing_id, connection);
    shut(connection.descriptor, connection.far_end);
  }

  void strike(const Session& session, const std::string& why) {
    const auto subject =
        subject_of(session.peer.key, host_of(session.peer.address), session.peer.incarnation);
    if (strikes_.strike(subject, now_) == Strikes::Verdict::noted) return;
    counters_.add(Count::struck_off);
    end_session(session.routing_id, Gone::struck_off, "struck off; the last was: " + why);
  }

  void refuse_version(const std::string& routing_id, const Session* session,
                      const Prelude& prelude) {
    const std::string found = std::to_string(prelude.major) + "." + std::to_string(prelude.minor);
    const std::string wanted = std::to_string(wire_major) + ".x";
    if (session) {
      bad(routing_id, session, Count::wrong_version, "speaks version " + found + " of the wire");
      return;
    }
    counters_.add(Count::wrong_version);
    const auto connection = listening_.connections().find(parts_.descriptor());
    listening_.tell_refused(connection.far_end,
                            "speaks version " + found + " of the wire, wanted " + wanted);
    reject(routing_id, connection, rejection("version", found, wanted));
  }

  /// Sends the reason and ends the connection a little later. Nothing more is read from it.
  void reject(const std::string& routing_id, const Connection& connection, const Message& why) {
    if (!say_farewell(routing_id, connection)) {
      shut(connection.descriptor, connection.far_end);
      return;
    }
    if (const auto parts = encode(why)) send_parts(listening_.socket(), routing_id, *parts);
  }
  /// Ignores all further messages of a connection until it has ended.
  bool say_farewell(const std::string& routing_id, const Connection& connection) {
    if (farewells_.size() >= most_farewells) return false;
    farewells_[routing_id] = {now_ + farewell, connection};
    return true;
  }

  std::optional<TimePoint> next_duty() {
    auto next = listening_.connections().next_look();
    for (const auto& [unused, farewell] : farewells_)
      if (!next || farewell.time < *next) next = farewell.time;
    return next;
  }
  void end_farewells() {
    std::erase_if(farewells_, [this](const auto& entry) {
      if (entry.second.time > now_) return false;
      shut(entry.second.connection.descriptor, entry.second.connection.far_end);
      return true;
    });
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
      shut(connection.descriptor, connection.far_end);
    }
  }

  void lose(const Connection& connection) {
    // Its last messages may still wait to be read.
    for (int i = 0; i < last_words && receive(); ++i) {
    }
    if (listening_.connections().silent(connection)) counters_.add(Count::failed_connection);
    listening_.connections().forget(connection);
    const auto found = by_connection_.find(connection.number);
    if (found != by_connection_.end())
      forget(found->second, Gone::closed, "its connection has ended");
    std::erase_if(farewells_, [&](const auto& entry) {
      return entry.second.connection.number == connection.number;
    });
  }

  void end_session(std::string routing_id, Gone gone, const std::string& why) {
    const auto found = sessions_.find(routing_id);
    if (found == sessions_.end()) return;
    const Connection connection = found->second.connection;
    forget(routing_id, gone, why);
    // The peer may send more until it notices.
    say_farewell(routing_id, connection);
    shut(connection.descriptor, connection.far_end);
  }

  void forget(std::string routing_id, Gone gone, const std::string& why) {
    const auto found = sessions_.find(routing_id);
    assert(found != sessions_.end());
    const Session session = std::move(found->second);
    sessions_.erase(found);
    by_id_.erase(session.peer.id);
    by_connection_.erase(session.connection.number);
    if (events_.gone) events_.gone(session.peer, gone, why);
  }

  // The functions below handle outgoing messages.

  void follow_orders() {
    for (auto& order : orders_.take()) {
      if (auto* allow = std::get_if<Allow>(&order)) {
        change(std::move(allow->allowed));
        continue;
      }
      const PeerId peer = std::visit([](const auto& any) { return any.peer; }, order);
      const auto found = by_id_.find(peer);
      if (found == by_id_.end()) {
        if (std::holds_alternative<Outgoing>(order)) counters_.add(Count::no_such_peer);
        continue;
      }
      const std::string routing_id = found->second;
      if (const auto* outgoing = std::get_if<Outgoing>(&order))
        send(routing_id, outgoing->parts);
      else if (const auto* cut = std::get_if<Cut>(&order))
        end_session(routing_id, Gone::cut, cut->why);
      else if (const auto* struck = std::get_if<Strike>(&order))
        strike(Session(sessions_.at(routing_id)), struck->why);
    }
  }

  void change(AllowList allowed) {
    std::vector<std::string> stale;
    for (const auto& [routing_id, session] : sessions_) {
      const auto* before = options_.allowed.find(session.peer.key);
      const auto* now = allowed.find(session.peer.key);
      if (!before || !now || !(*before == *now)) stale.push_back(routing_id);
    }
    options_.allowed = std::move(allowed);
    for (const auto& routing_id : stale)
      end_session(routing_id, Gone::cut, "the list of hosts has changed");
  }

  void send(const std::string& routing_id, const std::vector<std::string>& parts) {
    switch (send_parts(listening_.socket(), routing_id, parts)) {
      case 0:
        counters_.add(Count::sent);
        return;
      case EAGAIN:
        counters_.add(Count::too_slow);
        end_session(routing_id, Gone::too_slow,
                    "it let more than " + std::to_string(options_.link.high_water) +
                        " messages come together");
        return;
      default:
        // Its end will be reported.
        counters_.add(Count::no_such_peer);
    }
  }

  // The functions below identify peers.

  Roles roles_of(const std::string& key) const {
    if (!options_.keys) return all_dialers;
    const auto* host = options_.allowed.find(key);
    return host ? host->roles : Roles();
  }
  static std::string subject_of(const std::string& key, const std::string& address,
                                std::uint64_t incarnation) {
    return (key.empty() ? address : key) + "/" + std::to_string(incarnation);
  }

  struct Farewell {
    TimePoint time;
    Connection connection;
  };

  ServerOptions options_;
  ServerEvents events_;
  Counters counters_;
  Handover<Order> orders_;
  std::atomic<bool> stop_ = false;
  ListeningSocket listening_;  // The thread's own, like all members below.
  TimePoint now_ = Clock::now();
  Parts parts_;
  PeerId last_peer_ = 0;
  std::unordered_map<std::string, Session> sessions_;  // Keyed by routing id.
  std::unordered_map<PeerId, std::string> by_id_;
  std::unordered_map<std::uint64_t, std::string> by_connection_;
  std::map<std::string, Farewell> farewells_;
  Strikes strikes_;
  RateLimit hellos_;

  std::thread thread_;
};

ControlServer::ControlServer(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
ControlServer::~ControlServer() = default;

Result<std::unique_ptr<ControlServer>> ControlServer::bind(ServerOptions options,
                                                           ServerEvents events) {
  auto loop = std::make_unique<Loop>(std::move(options), std::move(events));
  if (auto started = loop->start(); !started) return started.error();
  return std::unique_ptr<ControlServer>(new ControlServer(std::move(loop)));
}

const std::string& ControlServer::endpoint() const { return loop_->endpoint(); }
const Counters& ControlServer::counters() const { return loop_->counters(); }

Status ControlServer::send(PeerId peer, const Message& message) {
  auto parts = encode(message);
  if (!parts) return parts.error();
  const auto bytes = bytes_of(*parts);
  return loop_->order(Outgoing{peer, std::move(*parts)}, bytes);
}

Status ControlServer::cut(PeerId peer, std::string why) {
  return loop_->order(Cut{peer, std::move(why)}, 0);
}

Status ControlServer::allow(AllowList allowed) {
  return loop_->order(Allow{.allowed = std::move(allowed)}, 0);
}

Status ControlServer::strike(PeerId peer, std::string why) {
  return loop_->order(Strike{peer, std::move(why)}, 0);
}

}  // namespace troupe::transport
