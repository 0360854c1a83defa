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
  std::string address;  // "10.0.0.1"; an IPv6 address in brackets, as ports stand behind it.
  bool is_up = false;
  bool is_loopback = false;
  std::optional<std::int64_t> megabits = {};  // A second; nothing where the driver does not say.
};

std::vector<Interface> read_interfaces();

/// Whether it leads to containers or virtual machines of this host only: docker0, veth..., virbr0.
bool is_virtual_bridge(const std::string& name);

/// The one by which other machines reach this one: up, not loopback, no bridge to containers; of
/// several the fastest, and IPv4 before IPv6. Null where there is none.
const Interface* choose_interface(const std::vector<Interface>& interfaces);

/// The address of this machine on the way to "tcp://HOST:PORT", by the system's own routes: there
/// it is reached by whoever is on that side.
Result<std::string> address_towards(const std::string& endpoint);

/// The address by which others reach who listens at an endpoint: its own one, or that of the chosen
/// interface where it listens on all of them.
std::string address_of_listener(const std::string& endpoint);

/// An endpoint that listens on all interfaces, as one dials it who reaches its machine by another
/// address or endpoint; any other endpoint as it is.
std::string reached_at(const std::string& endpoint, const std::string& machine);

}  // namespace troupe::apps
