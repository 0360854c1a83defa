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
  double tail = 0;  // The fraction of messages that take up to `longest`.
  Duration longest = std::chrono::seconds(1);
  double duplicates = 0;  // The fraction of messages that arrive a second time later.
};

/// A simulated network that carries the encoded bytes of real messages. A connection keeps the
/// order of its messages and loses none while both ends live. It may repeat some of them. Messages
/// of different connections have no order.
class Network {
 public:
  using Address = std::int64_t;
  using Receive = std::function<void(Address from, transport::Message)>;

  Network(Clock& clock, const NetworkFaults& faults) : clock_(clock), faults_(faults) {}

  /// Registers a process until it ends. Messages in transit to an ended process are lost.
  void open(Address address, Receive receive) { receivers_[address] = std::move(receive); }
  void close(Address address) { receivers_.erase(address); }
  void send(Address from, Address to, const transport::Message& message);
  /// Delays all messages of one direction until `time` has passed.
  void cut(Address from, Address to, Duration time);
  bool is_cut(Address from, Address to) const;

  std::uint64_t messages() const { return messages_; }
  /// Returns the last message that could not be encoded or decoded; empty if there is none.
  const std::string& flaw() const { return flaw_; }

 private:
  using Way = std::pair<Address, Address>;
  using Parts = std::vector<std::string>;
  void deliver(Address from, Address to, const Parts& parts);

  Clock& clock_;
  NetworkFaults faults_;
  std::map<Address, Receive> receivers_;
  std::map<Way, Time> last_;  // The arrival time of the newest message.
  std::map<Way, Time> cut_until_;
  std::uint64_t messages_ = 0;
  std::string flaw_;
};

}  // namespace troupe::simulation
