#include "transport/control/control_peers.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "transport/wire/message_types.h"

namespace troupe::transport {
namespace {

/// The time that a rejected peer has to read the reason.
constexpr auto farewell_time = std::chrono::seconds(1);
constexpr std::size_t most_farewells = 1024;

Message rejection(const std::string& reason, const std::string& found, const std::string& wanted) {
  Message message;
  message.type = MessageName("node.reject").text();
  message.body.set("reason", reason);
  message.body.set("found", found);
  message.body.set("wanted", wanted);
  return message;
}

/// The answer to a message that a head does not handle.
Refusal not_handled(std::string_view type) {
  return refusal(RefusalCode::unsupported, "type",
                 "'" + std::string(type) + "' is not a message type that this head supports");
}

/// The answer to a message that the sender's roles may not send.
Refusal not_entitled(const MessageType& type, const Roles& roles) {
  if (!type.from.meets(all_dialers)) return not_handled(type.name);
  return refusal(
      RefusalCode::forbidden, "type",
      "a key with the roles " + to_string(roles) + " may not send '" + std::string(type.name) + "'",
      "it takes the role " + to_string(type.from) + " in the head's allow list");
}

std::string subject_of(const std::string& key, const std::string& address,
                       std::uint64_t incarnation) {
  return (key.empty() ? address : key) + "/" + std::to_string(incarnation);
}

}  // namespace

std::string host_of(const std::string& address) { return address.substr(0, address.rfind(':')); }

CrowdLimits CrowdLimits::of(std::size_t descriptors) {
  CrowdLimits limits;
  limits.connections = descriptors / 3;  // A head listens twice: messages, events.
  // All nodes of a cluster may dial at once, each from its own address.
  limits.strangers = std::clamp<std::size_t>(descriptors / 4, 8, 8192);
  limits.of_address = std::min<std::size_t>(limits.strangers / 2, 512);
  return limits;
}

std::vector<Crowd::TooMany> Crowd::add(std::uint64_t number, const std::string& far_end) {
  std::vector<TooMany> too_many;
  const auto crowd_out = [&](std::uint64_t which, std::string why) {
    if (!open_.contains(which)) return;
    remove(which);
    too_many.push_back({which, std::move(why)});
  };
  const std::string address = host_of(far_end);
  open_.emplace(number, address);
  strangers_.insert(number);
  auto& of_address = strangers_of_[address];
  of_address.insert(number);
  if (of_address.size() > limits_.of_address)
    crowd_out(*of_address.begin(), "more than " + std::to_string(limits_.of_address) +
                                       " connections from this address wait to be admitted");
  if (strangers_.size() > limits_.strangers)
    crowd_out(*strangers_.begin(), "more than " + std::to_string(limits_.strangers) +
                                       " connections wait to be admitted");
  if (open_.size() > limits_.connections)
    crowd_out(number, "there are " + std::to_string(limits_.connections) +
                          " connections already; raise the limit of open files (ulimit -n) of "
                          "this process to have more");
  return too_many;
}

void Crowd::admitted(std::uint64_t number) {
  if (strangers_.erase(number) == 0) return;
  const auto of_address = strangers_of_.find(open_.at(number));
  of_address->second.erase(number);
  if (of_address->second.empty()) strangers_of_.erase(of_address);
}

void Crowd::remove(std::uint64_t number) {
  admitted(number);
  open_.erase(number);
}

ControlPeers::ControlPeers(ServerOptions options, ServerEvents events, Counters& counters,
                           Socket& socket)
    : options_(std::move(options)),
      events_(std::move(events)),
      counters_(counters),
      socket_(socket),
      strikes_(options_.strikes),
      hellos_(options_.hellos_of_address, options_.hellos) {}

void ControlPeers::set_time(TimePoint now) {
  now_ = now;
  std::erase_if(farewells_, [this](const auto& entry) {
    if (entry.second.time > now_) return false;
    socket_.shut(entry.second.connection);
    return true;
  });
}

std::optional<TimePoint> ControlPeers::next_duty() const {
  std::optional<TimePoint> next;
  for (const auto& [unused, farewell] : farewells_)
    if (!next || farewell.time < *next) next = farewell.time;
  return next;
}

void ControlPeers::hear(const Route& route, const std::vector<std::string_view>& parts,
                        bool all_kept) {
  const auto found = sessions_.find(route);
  Session* const session = found == sessions_.end() ? nullptr : &found->second;
  if (const auto prelude = read_prelude(parts.empty() ? "" : parts[0]);
      prelude && prelude->major != wire_major) {
    refuse_version(route, session, *prelude);
    return;
  }
  auto message =
      all_kept
          ? decode(parts)
          : Error{"found a message of more than " + std::to_string(most_parts_kept) + " parts"};
  if (!message) {
    bad(route, session, Count::malformed, message.error().text);
    return;
  }
  const auto* type = find_message_type(message->type);
  if (!type) {
    counters_.add(Count::unknown_type);
    refuse(route, *message, not_handled(message->type));
    return;
  }
  const Roles roles = session ? session->peer.roles : roles_of(socket_.origin().key);
  if (!roles.meets(type->from)) {
    if (session) refuse(route, *message, not_entitled(*type, roles));
    bad(route, session, Count::wrong_role,
        message->type + ": a key with the roles " + to_string(roles) + " may not send this");
    return;
  }
  if (session) {
    pass_on(session->peer, std::move(*message));
    return;
  }
  if (type->session == MessageType::Session::opens)
    open_session(route, std::move(*message));
  else {
    counters_.add(Count::before_hello);
    refuse(
        route, *message,
        refusal(RefusalCode::conflict, "type",
                "found '" + message->type + "' before a session was opened", "send 'hello' first"));
  }
}

void ControlPeers::open_session(const Route& route, Message message) {
  const auto [connection, key] = socket_.origin();
  if (connection.number == 0) return;  // It has ended already.
  const std::string address = host_of(connection.far_end);
  const auto subject = subject_of(key, address, message.incarnation);
  if (const auto left = strikes_.quarantine_left(subject, now_)) {
    counters_.add(Count::quarantined);
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(*left).count();
    reject(route, connection,
           rejection("quarantined", "a peer that was disconnected for its bad messages",
                     "no message from it for " + std::to_string(seconds) + " s"));
    tell_refused(address,
                 "was disconnected and is quarantined for " + std::to_string(seconds) + " s more");
    return;
  }
  if (!hellos_.admit(address, now_)) {
    counters_.add(Count::too_many_hellos);
    tell_refused(address, "sends hello too often");
    socket_.shut(connection);  // It dials again after a while.
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
  session.route = route;
  session.connection = connection;
  const auto& placed = sessions_.emplace(route, std::move(session)).first->second;
  by_id_[placed.peer.id] = route;
  // A hello that was read after its connection's end took the place of another peer.
  if (const auto other = by_connection_.find(connection.number); other != by_connection_.end())
    forget(other->second, Gone::closed, "its connection has ended");
  by_connection_[connection.number] = route;
  socket_.admitted(connection);
  if (events_.connected) events_.connected(placed.peer);
  pass_on(placed.peer, std::move(message));
}

void ControlPeers::pass_on(const Peer& peer, Message message) {
  counters_.add(Count::received);
  if (events_.message) events_.message(peer, std::move(message));
}

// The functions below handle unwanted messages.

/// Answers a request that the head refuses. A message without an id expects no answer.
void ControlPeers::refuse(const Route& route, const Message& question, const Refusal& why) {
  if (question.type == Refusal::type) return;
  Message answer = to_message(why);
  answer.re = question.id;
  const auto parts = encode(answer);
  if (parts && socket_.send(route, *parts) == Socket::Sent::yes) counters_.add(Count::sent);
}

void ControlPeers::bad(const Route& route, const Session* session, Count count,
                       const std::string& why) {
  counters_.add(count);
  const auto [connection, key] =
      session ? Origin{session->connection, session->peer.key} : socket_.origin();
  tell_refused(connection.far_end, why);
  if (session) {
    strike_session(*session, why);
    return;
  }
  // A strike is the only state that a stranger causes.
  const auto subject = subject_of(key, host_of(connection.far_end), 0);
  if (strikes_.strike(subject, now_) == Strikes::Verdict::noted) return;
  counters_.add(Count::struck_off);
  say_farewell(route, connection);
  socket_.shut(connection);
}

void ControlPeers::strike_session(const Session& session, const std::string& why) {
  const auto subject =
      subject_of(session.peer.key, host_of(session.peer.address), session.peer.incarnation);
  if (strikes_.strike(subject, now_) == Strikes::Verdict::noted) return;
  counters_.add(Count::struck_off);
  end_session(session.route, Gone::struck_off, "disconnected; the last bad message: " + why);
}

void ControlPeers::refuse_version(const Route& route, const Session* session,
                                  const Prelude& prelude) {
  const std::string found = std::to_string(prelude.major) + "." + std::to_string(prelude.minor);
  const std::string wanted = std::to_string(wire_major) + ".x";
  if (session) {
    bad(route, session, Count::wrong_version, "uses version " + found + " of the wire protocol");
    return;
  }
  counters_.add(Count::wrong_version);
  const auto connection = socket_.origin().connection;
  tell_refused(connection.far_end,
               "uses version " + found + " of the wire protocol, wanted " + wanted);
  reject(route, connection, rejection("version", found, wanted));
}

/// Sends the reason and ends the connection a little later. Nothing more is read from it.
void ControlPeers::reject(const Route& route, const Connection& connection, const Message& why) {
  if (!say_farewell(route, connection)) {
    socket_.shut(connection);
    return;
  }
  if (const auto parts = encode(why)) socket_.send(route, *parts);
}
/// Ignores all further messages of a connection until it has ended.
bool ControlPeers::say_farewell(const Route& route, const Connection& connection) {
  if (farewells_.size() >= most_farewells) return false;
  farewells_[route] = {now_ + farewell_time, connection};
  return true;
}

void ControlPeers::end_session(Route route, Gone gone, const std::string& why) {
  const auto found = sessions_.find(route);
  if (found == sessions_.end()) return;
  const Connection connection = found->second.connection;
  forget(route, gone, why);
  // The peer may send more until it notices.
  say_farewell(route, connection);
  socket_.shut(connection);
}

void ControlPeers::forget(Route route, Gone gone, const std::string& why) {
  const auto found = sessions_.find(route);
  assert(found != sessions_.end());
  const Session session = std::move(found->second);
  sessions_.erase(found);
  by_id_.erase(session.peer.id);
  by_connection_.erase(session.connection.number);
  if (events_.gone) events_.gone(session.peer, gone, why);
}

Roles ControlPeers::roles_of(const std::string& key) const {
  if (!options_.keys) return all_dialers;
  const auto* host = options_.allowed.find(key);
  return host ? host->roles : Roles();
}

void ControlPeers::tell_refused(const std::string& address, const std::string& why) const {
  if (events_.refused) events_.refused(address, why);
}

void ControlPeers::lost(const Connection& connection) {
  const auto found = by_connection_.find(connection.number);
  if (found != by_connection_.end())
    forget(found->second, Gone::closed, "its connection has ended");
  std::erase_if(farewells_, [&](const auto& entry) {
    return entry.second.connection.number == connection.number;
  });
}

// The functions below handle the orders of this end.

ControlPeers::Session* ControlPeers::session_of(PeerId peer) {
  const auto found = by_id_.find(peer);
  return found == by_id_.end() ? nullptr : &sessions_.at(found->second);
}

void ControlPeers::send(PeerId peer, const std::vector<std::string>& parts) {
  auto* const session = session_of(peer);
  if (!session) return counters_.add(Count::no_such_peer);
  switch (socket_.send(session->route, parts)) {
    case Socket::Sent::yes:
      return counters_.add(Count::sent);
    case Socket::Sent::full:
      counters_.add(Count::too_slow);
      return end_session(session->route, Gone::too_slow,
                         "it let more than " + std::to_string(options_.link.high_water) +
                             " messages come together");
    case Socket::Sent::gone:
      // Its end will be reported.
      return counters_.add(Count::no_such_peer);
  }
}

void ControlPeers::cut(PeerId peer, const std::string& why) {
  if (auto* const session = session_of(peer)) end_session(session->route, Gone::cut, why);
}

void ControlPeers::strike(PeerId peer, const std::string& why) {
  if (auto* const session = session_of(peer)) strike_session(Session(*session), why);
}

void ControlPeers::allow(AllowList allowed) {
  std::vector<Route> stale;
  for (const auto& [route, session] : sessions_) {
    const auto* before = options_.allowed.find(session.peer.key);
    const auto* now = allowed.find(session.peer.key);
    if (!before || !now || !(*before == *now)) stale.push_back(route);
  }
  options_.allowed = std::move(allowed);
  for (const auto& route : stale) end_session(route, Gone::cut, "the allow list has changed");
}

}  // namespace troupe::transport
