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

std::string host_of(const std::string& address) { return address.substr(0, address.rfind(':')); }

CrowdLimits CrowdLimits::of(std::size_t descriptors) {
  CrowdLimits limits;
  limits.connections = descriptors / 3;  // A head listens twice: messages, events.
  // All nodes of a cluster may dial at once, each from its own address.
  limits.strangers = std::clamp<std::size_t>(descriptors / 4, 8, 8192);
  limits.of_address = std::min<std::size_t>(limits.strangers / 2, 512);
  return limits;
}

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
  ++open_;
  strangers_.insert(last_);
  strangers_of_[host_of(connection.far_end)].insert(last_);
  if (whose_ == Whose::own_user && !is_own(connection)) return turn_out(connection);
  thin_out(connection);
}

void Connections::turn_out(const Connection& connection) {
  in_doubt_.insert(connection.descriptor);
  const std::string who = connection.user ? "user " + std::to_string(*connection.user)
                                          : "somebody whose user the system does not tell";
  forget_stranger(connection);
  connections_.at(connection.number).is_shut = true;
  --open_;
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

void Connections::thin_out(const Connection& newest) {
  const auto of_address = strangers_of_.find(host_of(newest.far_end));
  if (of_address->second.size() > limits_.of_address)
    crowd_out(*of_address->second.begin(),
              "more than " + std::to_string(limits_.of_address) +
                  " connections from this address wait to be admitted");
  if (strangers_.size() > limits_.strangers)
    crowd_out(*strangers_.begin(), "more than " + std::to_string(limits_.strangers) +
                                       " connections wait to be admitted");
  if (open_ > limits_.connections)
    crowd_out(newest.number, "there are " + std::to_string(limits_.connections) +
                                 " connections already; raise the limit of open files (ulimit -n) "
                                 "of this process to have more");
}

void Connections::crowd_out(std::uint64_t number, const std::string& why) {
  auto& watch = connections_.at(number);
  if (watch.is_shut) return;
  forget_stranger(watch.connection);
  watch.is_shut = true;
  --open_;
  shut(watch.connection.descriptor, watch.connection.far_end);
  news_.push_back({What::crowded_out, watch.connection, why});
}

void Connections::admitted(const Connection& connection) { forget_stranger(connection); }

void Connections::forget_stranger(const Connection& connection) {
  if (strangers_.erase(connection.number) == 0) return;
  const auto of_address = strangers_of_.find(host_of(connection.far_end));
  of_address->second.erase(connection.number);
  if (of_address->second.empty()) strangers_of_.erase(of_address);
}

std::optional<Connections::News> Connections::next() {
  read_monitor();
  if (news_.empty()) return std::nullopt;
  News news = std::move(news_.front());
  news_.pop_front();
  return news;
}

void Connections::forget(const Connection& connection) {
  forget_stranger(connection);
  const auto known = connections_.find(connection.number);
  if (known != connections_.end()) {
    if (!known->second.is_shut) --open_;
    connections_.erase(known);
  }
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
