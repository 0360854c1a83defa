#include "bench/link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <charconv>
#include <random>
#include <utility>
#include <vector>

#include "bench/channel_side.h"
#include "bench/figures.h"
#include "bench/half_round_trip.h"
#include "transport/channels/socket.h"

namespace troupe::bench {
namespace {

using namespace transport;

/// Returns "10.0.0.1" for "10.0.0.1:4711". IPv6 addresses keep their brackets.
std::string without_port(const std::string& address) {
  return address.substr(0, address.rfind(':'));
}

/// Makes a socket of transport blocking, as a Meeting needs it, but with a timeout.
void let_block(const Descriptor& socket, std::chrono::milliseconds patience) {
  const int flags = fcntl(socket.number(), F_GETFL);
  fcntl(socket.number(), F_SETFL, flags & ~O_NONBLOCK);
  const timeval wait{.tv_sec = patience.count() / 1000, .tv_usec = patience.count() % 1000 * 1000};
  setsockopt(socket.number(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  setsockopt(socket.number(), SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
}

bool is_readable(const Descriptor& socket, std::chrono::milliseconds patience) {
  pollfd ready{socket.number(), POLLIN, 0};
  return poll(&ready, 1, static_cast<int>(patience.count())) > 0;
}

}  // namespace

Result<LinkAnswer> LinkAnswer::listen(const std::string& interface) {
  const auto address = tcp_address(interface + ":0");
  if (!address) return address.error();
  auto listening = listen_at(*address);
  if (!listening) return within(interface, listening.error());
  std::random_device random;
  LinkAnswer answer;
  answer.listening_ = std::move(*listening);
  answer.interface_ = interface;
  answer.secret_ = static_cast<std::uint64_t>(random()) << 32 ^ random();
  return answer;
}

std::string LinkAnswer::address() const {
  return to_text(address_of(listening_)) + "/" + std::to_string(secret_);
}

Status LinkAnswer::serve(std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0 || !is_readable(listening_, left))
      return Error{"nobody has come to " + to_text(address_of(listening_)) + " within " +
                   std::to_string(patience.count() / 1000) + " s"};
    const Descriptor control(accept4(listening_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!control) continue;
    let_block(control, left);
    std::uint64_t shown = 0;
    if (!read_all(control.number(), &shown, sizeof shown) || shown != secret_) continue;
    return echo_channels({.control = control.number(),
                          .interface = interface_,
                          .secret = secret_,
                          .seat = Meeting::Seat::answers,
                          .place = Meeting::Place::two_machines});
  }
}

Result<LinkFigures> ask_link(const std::string& address, std::chrono::milliseconds patience) {
  const auto slash = address.find('/');
  std::uint64_t secret = 0;
  const char* end = address.data() + address.size();
  if (slash == std::string::npos ||
      std::from_chars(address.data() + slash + 1, end, secret).ptr != end)
    return Error{"'" + address + "': wanted what the other machine printed, ADDRESS:PORT/SECRET"};
  const auto where = tcp_address(address.substr(0, slash));
  if (!where) return where.error();
  const auto control = connect_to(*where, std::chrono::steady_clock::now() + patience);
  if (!control) return control.error();
  let_block(*control, patience);
  sockaddr_storage own{};
  SocketAddress here{own, sizeof own};
  getsockname(control->number(), reinterpret_cast<sockaddr*>(&here.storage), &here.size);
  if (!write_all(control->number(), &secret, sizeof secret))
    return Error{address.substr(0, slash) + ": the other side hung up"};
  auto echo = ChannelEcho::meet({.control = control->number(),
                                 .interface = without_port(to_text(here)),
                                 .secret = secret,
                                 .place = Meeting::Place::two_machines});
  if (!echo) return echo.error();
  LinkFigures figures;
  const auto latency = (*echo)->measure(Way::tcp, {"64 B", 64, 500});
  if (!latency) return latency.error();
  figures.latency = *latency;
  constexpr Size large{"16 MiB", 16 * mib, 4};
  constexpr int rounds = 5;
  std::vector<double> plain, encrypted;
  for (int round = 0; round < rounds; ++round)
    for (auto& [way, rates] :
         {std::pair(Way::tcp, &plain), std::pair(Way::tcp_sealed, &encrypted)}) {
      const auto seconds = (*echo)->measure(way, large);
      if (!seconds) return seconds.error();
      rates->push_back(static_cast<double>(large.bytes) / *seconds);
    }
  figures.bandwidth = median(plain);
  figures.encrypted = median(encrypted);
  return figures;
}

}  // namespace troupe::bench
