#include "transport/control/connections.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/control/far_user.h"
#include "transport/wire/message_types.h"

namespace troupe::transport {
namespace {

constexpr auto look_every = std::chrono::milliseconds(500);
/// The most bytes of ZeroMQ's own messages in that time.
constexpr std::uint64_t small_talk = std::uint64_t{4} << 10;

/// Accepts root as well, which can do all that this user can.
bool is_own(const Connection& connection) {
  return connection.user == ::geteuid() || connection.user == uid_t{0};
}

}  // namespace

void Connections::read_monitor() {
  std::set<int> just_accepted;
  while (const auto event = monitor_.next()) switch (event->what) {
      case ZMQ_EVENT_LISTENING:
        listening_ = Descriptor(::fcntl(event->value, F_DUPFD_CLOEXEC, 0));
        break;
      case ZMQ_EVENT_ACCEPTED:
        accepted(event->value);
        just_accepted.insert(event->value);
        break;
      case ZMQ_EVENT_DISCONNECTED:
        // It may have ended before the lookup, which then found another connection's user.
        if (whose_ == Whose::own_user && just_accepted.contains(event->value))
          in_doubt_.insert(event->value);
        if (const auto found = newest_.find(event->value); found != newest_.end()) {
          auto& watch = connections_.at(found->second);
          watch.has_ended = true;
          news_.push_back({What::ended, watch.connection, ""});
        }
        break;
      case ZMQ_EVENT_ACCEPT_FAILED:
        not_accepted(event->value);
        break;
      default:
        break;
    }
}

void Connections::accepted(int descriptor) {
  ++last_;
  const Connection connection{
      last_, descriptor, far_end(descriptor).value_or(""),
      whose_ == Whose::own_user ? user_at_far_end(descriptor) : std::nullopt};
  connections_[last_] = {connection};
  newest_[descriptor] = last_;
  if (whose_ == Whose::own_user && !is_own(connection)) return turn_out(connection);
  for (const auto& [number, why] : crowd_.add(last_, connection.far_end)) {
    auto& watch = connections_.at(number);
    watch.is_shut = true;
    shut(watch.connection.descriptor, watch.connection.far_end);
    news_.push_back({What::crowded_out, watch.connection, why});
  }
}

void Connections::turn_out(const Connection& connection) {
  in_doubt_.insert(connection.descriptor);
  const std::string who = connection.user ? "user " + std::to_string(*connection.user)
                                          : "somebody whose user the system does not tell";
  connections_.at(connection.number).is_shut = true;
  shut(connection.descriptor, connection.far_end);
  news_.push_back({What::foreign, connection,
                   "it is " + who + " of this machine, and without keys only user " +
                       std::to_string(::geteuid()) +
                       ", who started this, is heard; `troupe keys new` makes keys for others"});
}

void Connections::all_read() {
  // Everything from before a descriptor's newest connection was read, so what comes now is from
  // that connection.
  std::erase_if(in_doubt_, [this](int descriptor) {
    const auto newest = newest_.find(descriptor);
    if (newest == newest_.end()) return false;
    const auto& watch = connections_.at(newest->second);
    return is_own(watch.connection) && !watch.is_shut && !watch.has_ended;
  });
}

void Connections::not_accepted(int error) {
  // Another thread was faster: ZeroMQ's, or turn_away().
  if (error == EAGAIN) return;
  news_.push_back({What::not_accepted, {}, zmq_strerror(error)});
  // ZeroMQ's thread retries at once while a connection waits.
  if (SpareDescriptor::is_needed(error) && listening_)
    while (spare_.turn_away(listening_.number())) {
    }
}

void Connections::admitted(const Connection& connection) { crowd_.admitted(connection.number); }

std::optional<Connections::News> Connections::next() {
  read_monitor();
  if (news_.empty()) return std::nullopt;
  News news = std::move(news_.front());
  news_.pop_front();
  return news;
}

void Connections::forget(const Connection& connection) {
  crowd_.remove(connection.number);
  connections_.erase(connection.number);
  const auto found = newest_.find(connection.descriptor);
  if (found != newest_.end() && found->second == connection.number) newest_.erase(found);
}

Connection Connections::find(int descriptor) {
  read_monitor();
  const auto found = newest_.find(descriptor);
  return found == newest_.end() ? Connection{} : connections_.at(found->second).connection;
}

void Connections::heard(int descriptor) {
  const auto found = newest_.find(descriptor);
  if (found == newest_.end()) return;
  auto& watch = connections_.at(found->second);
  watch.whole = watch.ever = true;
}

bool Connections::silent(const Connection& connection) const {
  const auto found = connections_.find(connection.number);
  return found == connections_.end() || !found->second.ever;
}

std::vector<Connection> Connections::endless(TimePoint now) {
  std::vector<Connection> found;
  if (now < next_look_) return found;
  next_look_ = now + look_every;
  for (auto& [unused, watch] : connections_) {
    const auto come = bytes_received(watch.connection.descriptor);
    if (!come) continue;
    // Without a complete message, ZeroMQ may still have exchanged messages of its own.
    watch.bytes =
        std::exchange(watch.whole, false) ? *come : std::min(*come, watch.bytes + small_talk);
    if (*come - watch.bytes > 2 * largest_message()) found.push_back(watch.connection);
  }
  return found;
}

std::optional<TimePoint> Connections::next_look() const {
  if (!news_.empty()) return TimePoint();
  return connections_.empty() ? std::nullopt : std::optional(next_look_);
}

}  // namespace troupe::transport
