#include "simulation/network.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>

namespace troupe::simulation {

void Network::send(Address from, Address to, const transport::Message& message) {
  auto encoded = transport::encode(message);
  if (!encoded) {
    flaw_ = message.type + ": " + encoded.error().text;
    return;
  }
  const auto parts = std::make_shared<const Parts>(std::move(*encoded));
  Duration delay = faults_.delay;
  if (faults_.tail > 0 && clock_.chance(faults_.tail))
    delay += std::chrono::duration_cast<Duration>(faults_.longest * std::pow(clock_.uniform(), 3));
  const Way way{from, to};
  Time at = clock_.now() + delay;
  if (const auto cut = cut_until_.find(way); cut != cut_until_.end())
    at = std::max(at, cut->second + faults_.delay);
  auto& last = last_[way];
  at = last = std::max(at, last);
  clock_.at(at, [this, from, to, parts] { deliver(from, to, *parts); });
  if (faults_.duplicates > 0 && clock_.chance(faults_.duplicates))
    clock_.at(at + clock_.between(Duration(0), faults_.longest),
              [this, from, to, parts] { deliver(from, to, *parts); });
}

void Network::cut(Address from, Address to, Duration time) {
  auto& until = cut_until_[{from, to}];
  until = std::max(until, clock_.now() + time);
}

bool Network::is_cut(Address from, Address to) const {
  const auto found = cut_until_.find({from, to});
  return found != cut_until_.end() && found->second > clock_.now();
}

void Network::deliver(Address from, Address to, const Parts& parts) {
  const auto found = receivers_.find(to);
  if (found == receivers_.end()) return;
  const std::vector<std::string_view> views(parts.begin(), parts.end());
  auto message = transport::decode(views);
  if (!message) {
    flaw_ = message.error().text;
    return;
  }
  ++messages_;
  const Receive receive = found->second;  // The receiver may unregister itself.
  receive(from, std::move(*message));
}

}  // namespace troupe::simulation
