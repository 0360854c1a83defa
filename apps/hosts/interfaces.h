#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"

namespace troupe::apps {

/// A network interface with one of its addresses.
struct Interface {
  std::string name;     // "eth0"
  std::string address;  // "10.0.0.1"; an IPv6 address is in brackets, since a port may follow.
  bool is_up = false;
  bool is_loopback = false;
  // Megabits per second; empty if the driver does not say.
  std::optional<std::int64_t> megabits = {};
};

std::vector<Interface> read_interfaces();

/// Returns whether the interface leads only to containers or virtual machines of this host:
/// docker0, veth..., virbr0.
bool is_virtual_bridge(const std::string& name);

/// Returns the interface that other machines reach this one by: up, not loopback, no bridge to
/// containers. Prefers the fastest, then IPv4. Null if there is none.
const Interface* choose_interface(const std::vector<Interface>& interfaces);

/// Returns this machine's address on the route to "tcp://HOST:PORT". Machines on that side reach it
/// by this address.
Result<std::string> address_towards(const std::string& endpoint);

/// Returns the address by which other machines reach a listener: its own address, or the chosen
/// interface's if it listens on all interfaces.
std::string address_of_listener(const std::string& endpoint);

/// Replaces the wildcard of an endpoint that listens on all interfaces by `machine`, an address or
/// endpoint. Returns any other endpoint unchanged.
std::string reached_at(const std::string& endpoint, const std::string& machine);

}  // namespace troupe::apps
