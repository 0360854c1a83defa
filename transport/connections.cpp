#include "transport/connections.h"

#include <algorithm>
#include <utility>

#include "transport/message_types.h"

namespace troupe::transport {
namespace {

constexpr auto look_every = std::chrono::milliseconds(500);
/// What ZeroMQ itself says in that time.
constexpr std::uint64_t small_talk = std::uint64_t{4} << 10;

}  // namespace

void Connections::read_monitor() {
  while (const auto event = monitor_.next()) switch (event->what) {
      case ZMQ_EVENT_ACCEPTED:
        ++last_;
        connections_[last_] = {{last_, event->value, far_end(event->value).value_or("")}};
        newest_[event->value] = last_;
        break;
      case ZMQ_EVENT_DISCONNECTED:
        if (const auto found = newest_.find(event->value); found != newest_.end())
          news_.push_back({What::ended, connections_.at(found->second).connection, ""});
        break;
      case ZMQ_EVENT_ACCEPT_FAILED:
        news_.push_back({What::not_accepted, {}, zmq_strerror(event->value)});
        break;
      default:
        break;
    }
}

std::optional<Connections::News> Connections::next() {
  read_monitor();
  if (news_.empty()) return std::nullopt;
  News news = std::move(news_.front());
  news_.pop_front();
  return news;
}

void Connections::forget(const Connection& connection) {
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
    // Where nothing was whole, ZeroMQ may yet have talked.
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
