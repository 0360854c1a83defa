#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "simulation/clock.h"
#include "transport/wire/wire.h"

namespace troupe::simulation {

struct NetworkFaults {
  Duration delay = std::chrono::microseconds(100);
  double tail = 0;  // Of messages, that take up to `longest`.
  Duration longest = std::chrono::seconds(1);
  double duplicates = 0;  // Of messages, that come once more, later.
};

/// Messages in the bytes of the wire, over connections that keep the order of what they carry, lose
/// nothing while both ends live, and repeat some of it when they were down. Between connections
/// there is no order.
class Network {
 public:
  using Address = std::int64_t;
  using Receive = std::function<void(Address from, transport::Message)>;

  Network(Clock& clock, const NetworkFaults& faults) : clock_(clock), faults_(faults) {}

  /// A process that listens, until it ends: what is on its way to it then is lost.
  void open(Address address, Receive receive) { receivers_[address] = std::move(receive); }
  void close(Address address) { receivers_.erase(address); }
  void send(Address from, Address to, const transport::Message& message);
  /// One way: what is said meanwhile arrives later.
  void cut(Address from, Address to, Duration time);
  bool is_cut(Address from, Address to) const;

  std::uint64_t messages() const { return messages_; }
  /// What could not be put on the wire or read from it; empty: nothing.
  const std::string& flaw() const { return flaw_; }

 private:
  using Way = std::pair<Address, Address>;
  using Parts = std::vector<std::string>;
  void deliver(Address from, Address to, const Parts& parts);

  Clock& clock_;
  NetworkFaults faults_;
  std::map<Address, Receive> receivers_;
  std::map<Way, Time> last_;  // When the newest message arrives.
  std::map<Way, Time> cut_until_;
  std::uint64_t messages_ = 0;
  std::string flaw_;
};

}  // namespace troupe::simulation
