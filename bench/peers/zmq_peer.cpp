#include "bench/peers/zmq_peer.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "transport/channels/socket.h"

namespace troupe::bench {
namespace {

constexpr int patience = 60'000;

struct Order {
  std::uint64_t bytes = 0;
  std::uint64_t turns = 0;  // 0: stop.
};

}  // namespace

class ZmqPeer::Socket {
 public:
  /// `patience` is in milliseconds. -1 waits forever.
  explicit Socket(int patience) : socket_(context_, zmq::socket_type::pair) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvtimeo, patience);
    socket_.set(zmq::sockopt::sndtimeo, patience);
  }

  void listen(const std::string& where) { socket_.bind(where); }
  void dial(const std::string& where) { socket_.connect(where); }

  bool send(const void* from, std::size_t bytes) {
    return socket_.send(zmq::const_buffer(from, bytes)).has_value();
  }
  /// Receives a message without a copy, as ZeroMQ's users do.
  bool receive(std::size_t bytes) { return socket_.recv(message_) && message_.size() == bytes; }
  const zmq::message_t& message() const { return message_; }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
  zmq::message_t message_;
};

namespace {

/// Echoes data until an order says to stop.
template <class Socket>
void echo(Socket& socket) {
  while (socket.receive(sizeof(Order))) {
    const auto order = *socket.message().template data<Order>();
    const std::vector<char> out(order.bytes);
    for (std::uint64_t turn = 0; turn < order.turns; ++turn)
      if (!socket.receive(out.size()) || !socket.send(out.data(), out.size())) return;
    if (order.turns == 0) return;
  }
}

std::string endpoint(const std::string& folder) { return "ipc://" + folder + "/pair"; }

}  // namespace

ZmqPeer::ZmqPeer(storage::TemporaryFolder folder) : folder_(std::move(folder)), child_(fork()) {
  if (child_ != 0) return;
  // Ends with the parent, because it waits for orders forever.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  stay_on(1);
  try {
    Socket socket(-1);
    socket.dial(endpoint(folder_.path()));
    echo(socket);
  } catch (const zmq::error_t&) {
    _exit(1);  // The other end times out and reports that.
  }
  _exit(0);
}

ZmqPeer::~ZmqPeer() {
  if (socket_) {
    const Order over;
    (void)socket_->send(&over, sizeof over);
  } else if (child_ > 0) {
    kill(child_, SIGKILL);
  }
  if (child_ > 0) waitpid(child_, nullptr, 0);
  socket_.reset();
}

Result<std::unique_ptr<ZmqPeer>> ZmqPeer::by_ipc() {
  auto folder = storage::TemporaryFolder::make();
  if (!folder) return folder.error();
  return std::unique_ptr<ZmqPeer>(new ZmqPeer(std::move(*folder)));
}

Result<double> ZmqPeer::measure(const Size& size) try {
  if (!socket_) {
    auto socket = std::make_unique<Socket>(patience);
    socket->listen(endpoint(folder_.path()));
    socket_ = std::move(socket);
  }
  const std::vector<char> out(size.bytes);
  const Order order{size.bytes, static_cast<std::uint64_t>(size.turns) + 1};
  bool is_there = socket_->send(&order, sizeof order);
  std::chrono::steady_clock::time_point start;
  for (int turn = -1; turn < size.turns && is_there; ++turn) {
    if (turn == 0) start = std::chrono::steady_clock::now();
    is_there = socket_->send(out.data(), out.size()) && socket_->receive(out.size());
  }
  if (!is_there) return Error{"the process at the other end does not answer"};
  return seconds_since(start) / size.turns / 2;
} catch (const zmq::error_t& error) {
  return Error{std::string("ZeroMQ: ") + error.what()};
}

}  // namespace troupe::bench
