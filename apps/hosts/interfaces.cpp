#include "apps/hosts/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <string_view>
#include <tuple>

#include "core/descriptor.h"
#include "transport/channels/socket.h"
#include "transport/control/endpoint.h"

namespace troupe::apps {
namespace {

/// Formats an address without its port, which is 0. An IPv6 address keeps its brackets.
std::string address_text(const sockaddr* address) {
  transport::SocketAddress copy;
  copy.size = address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::copy_n(reinterpret_cast<const char*>(address), copy.size,
              reinterpret_cast<char*>(&copy.storage));
  const std::string text = transport::to_text(copy);
  return text.substr(0, text.rfind(':'));
}

bool is_link_local(const sockaddr* address) {
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

std::optional<std::int64_t> speed_of(const std::string& name) {
  std::int64_t megabits = 0;
  std::ifstream file("/sys/class/net/" + name + "/speed");
  if (!(file >> megabits) || megabits <= 0) return {};
  return megabits;
}

bool listens_everywhere(const transport::Endpoint& endpoint) {
  return endpoint.kind == transport::Endpoint::Kind::tcp &&
         (endpoint.host == "*" || endpoint.host == "0.0.0.0" || endpoint.host == "[::]");
}

}  // namespace

std::vector<Interface> read_interfaces() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> freed(all, freeifaddrs);
  std::vector<Interface> found;
  for (const auto* one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr) continue;
    const int family = one->ifa_addr->sa_family;
    // A link-local address is useless to machines behind other links.
    if ((family != AF_INET && family != AF_INET6) || is_link_local(one->ifa_addr)) continue;
    found.push_back({one->ifa_name, address_text(one->ifa_addr), (one->ifa_flags & IFF_UP) != 0,
                     (one->ifa_flags & IFF_LOOPBACK) != 0, speed_of(one->ifa_name)});
  }
  return found;
}

bool is_virtual_bridge(const std::string& name) {
  constexpr std::array<std::string_view, 11> beginnings = {"docker", "br-",     "veth", "virbr",
                                                           "cni",    "flannel", "cali", "podman",
                                                           "lxc",    "lxdbr",   "vmnet"};
  return std::ranges::any_of(beginnings, [&](auto begin) { return name.starts_with(begin); });
}

const Interface* choose_interface(const std::vector<Interface>& interfaces) {
  const auto worth = [](const Interface& one) {
    return std::tuple(one.megabits.value_or(0), !one.address.starts_with('['));
  };
  const Interface* best = nullptr;
  for (const auto& one : interfaces) {
    if (!one.is_up || one.is_loopback || is_virtual_bridge(one.name)) continue;
    if (!best || worth(one) > worth(*best)) best = &one;
  }
  return best;
}

Result<std::string> address_towards(const std::string& endpoint) {
  const auto parsed = transport::parse_endpoint(endpoint);
  if (!parsed) return parsed.error();
  if (is_local(*parsed)) return std::string("127.0.0.1");
  std::string host = parsed->host;
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  addrinfo wanted{}, *answers = nullptr;
  wanted.ai_socktype = SOCK_DGRAM;
  const int failed =
      getaddrinfo(host.c_str(), std::to_string(parsed->port).c_str(), &wanted, &answers);
  if (failed != 0) return Error{endpoint + ": " + gai_strerror(failed) + "; is the name right?"};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> freed(answers, freeaddrinfo);
  // Connecting a datagram socket sends nothing; the system only chooses a route.
  const Descriptor probe(socket(answers->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe || connect(probe.number(), answers->ai_addr, answers->ai_addrlen) != 0)
    return within(endpoint, transport::system_error("there is no network route to it"));
  const auto here = transport::address_of(probe);
  std::string address = address_text(reinterpret_cast<const sockaddr*>(&here.storage));
  // A machine's own name may resolve to an address that only it can reach (127.0.1.1).
  if (address.starts_with("127.") || address == "[::1]")
    return address_of_listener("tcp://*:" + std::to_string(parsed->port));
  return address;
}

std::string address_of_listener(const std::string& endpoint) {
  const std::string loopback = "127.0.0.1";
  const auto parsed = transport::parse_endpoint(endpoint);
  if (!parsed || parsed->kind != transport::Endpoint::Kind::tcp) return loopback;
  if (!listens_everywhere(*parsed)) return parsed->host;
  const auto interfaces = read_interfaces();
  const Interface* chosen = choose_interface(interfaces);
  return chosen ? chosen->address : loopback;
}

std::string reached_at(const std::string& endpoint, const std::string& machine) {
  auto parsed = transport::parse_endpoint(endpoint);
  if (!parsed || !listens_everywhere(*parsed)) return endpoint;
  const auto dialed = transport::parse_endpoint(machine);
  parsed->host = !dialed ? machine : dialed->host.empty() ? "127.0.0.1" : dialed->host;
  return to_string(*parsed);
}

}  // namespace troupe::apps
