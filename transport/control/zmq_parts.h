#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "core/result.h"
#include "core/threads/event_fd.h"
#include "transport/control/control_socket.h"
#include "transport/control/endpoint.h"
#include "transport/control/zap.h"

/// What the sockets of this folder have in common. Not for others: it names ZeroMQ.
namespace troupe::transport {

/// Messages that are read before the others of the loop have their turn.
constexpr int fair_share = 256;
/// Messages that are read at most after a connection has ended.
constexpr int last_words = 1 << 16;

/// What any thread hands to the thread of a socket: bounded, in order.
template <class T>
class Handover {
 public:
  explicit Handover(const LinkOptions& link) : most_(link.queue), most_bytes_(link.queue_bytes) {}

  /// False where there are too many.
  bool push(T item, std::size_t bytes) {
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      if (items_.size() >= most_ || bytes > most_bytes_ - bytes_) return false;
      first = items_.empty();
      bytes_ += bytes;
      items_.push_back(std::move(item));
    }
    if (first) wake_.ring();
    return true;
  }
  std::vector<T> take() {
    wake_.clear();
    const std::lock_guard lock(mutex_);
    bytes_ = 0;
    return std::exchange(items_, {});
  }
  EventFd& wake() { return wake_; }

 private:
  std::size_t most_;
  std::size_t most_bytes_;
  std::mutex mutex_;
  std::vector<T> items_;
  std::size_t bytes_ = 0;
  EventFd wake_;
};

/// Tells what happens to the connections of a socket. To be made before the socket is bound or
/// connected, and destroyed before it.
class Monitor {
 public:
  struct Event {
    int what = 0;   // ZMQ_EVENT_...
    int value = 0;  // A descriptor, an errno, a status: depends on what.
  };

  Monitor(zmq::context_t& context, zmq::socket_t& socket);
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  std::optional<Event> next();
  zmq::socket_t& socket() { return events_; }

 private:
  zmq::socket_t& watched_;
  zmq::socket_t events_;
};

/// Parts that were sent in one piece.
class Parts {
 public:
  /// At most `most` are kept; the others are read and thrown away. False where nothing has come.
  bool receive(zmq::socket_t& socket, std::size_t most);

  std::size_t kept() const { return messages_.size(); }
  bool all_kept() const { return all_kept_; }
  std::string_view operator[](std::size_t i) const { return messages_[i].to_string_view(); }
  /// From the i-th on, for as long as nothing else is received.
  std::vector<std::string_view> from(std::size_t first) const;
  std::vector<std::string> copy() const;

  /// What ZeroMQ knows of the sender; empty where it knows nothing.
  std::string property(const char* name) const;
  /// The connection's descriptor; it may be closed already, or be another's. -1 where unknown.
  int descriptor() const;

 private:
  std::vector<zmq::message_t> messages_;
  bool all_kept_ = true;
};

/// All parts or none; the number of the error, or 0. The socket must not block.
int send_parts(zmq::socket_t& socket, std::optional<std::string_view> routing_id,
               const std::vector<std::string>& parts);

void set_link_options(zmq::socket_t& socket, const LinkOptions& link, const Endpoint& endpoint);
/// Of an end that dials: that it asks whether the far end lives, and says how long it may be silent
/// itself.
void ask_far_end(zmq::socket_t& socket, const LinkOptions& link);
/// Of an end that listens: the system asks on its behalf. ZeroMQ may not: of a connection that has
/// ended while more messages wait than may (`rcvhwm`), it would ask with an assertion that fails
/// (4.3.4), and whoever sends much and hangs up would end the process.
void let_system_ask(zmq::socket_t& socket);
/// Of an end that listens: its keys, and that it asks who gets in.
void set_server_keys(zmq::socket_t& socket, const std::optional<KeyPair>& keys);
/// Of an end that dials.
void set_client_keys(zmq::socket_t& socket, const std::optional<KeyPair>& keys,
                     const std::string& server_key);

/// Binds the socket, and gives the endpoint that it got.
Result<std::string> bind_socket(zmq::socket_t& socket, const Endpoint& endpoint);

/// ZeroMQ leaves the file of an ipc endpoint behind. To be called before its socket is closed, as
/// long as nobody else can have it.
void remove_socket_file(const std::string& bound);

/// The socket that ZeroMQ asks who gets in. To be made before the other one is bound.
zmq::socket_t zap_socket(zmq::context_t& context);
/// Answers what was asked; false where nothing was. What was refused is told.
bool answer_next(zmq::socket_t& zap, const AllowList& allowed,
                 const std::function<void(const ZapAnswer&)>& refused);

/// An error where plain messages would leave the machine unasked, or keys are no keys.
Status check_security(const Endpoint& endpoint, const std::optional<KeyPair>& keys,
                      LinkOptions::Plain plain);

/// Which connection a descriptor is: "10.0.0.7:40112", "process 4711"; nothing where it is none.
std::optional<std::string> far_end(int descriptor);

/// The bytes that have come on a TCP connection; nothing for others.
std::optional<std::uint64_t> bytes_received(int descriptor);

/// Ends the connection that a descriptor was, if it still is that one.
void shut(int descriptor, const std::string& far_end);

std::size_t bytes_of(const std::vector<std::string>& parts);

/// Waits until one of the items is ready; a signal may end the wait early.
void wait_for(std::vector<zmq_pollitem_t>& items, std::chrono::milliseconds time);

/// Signals are for the threads of others. To be called first in a thread of ours.
void block_signals();

/// Milliseconds until then for poll(): rounded up, at least 0; -1 for never.
std::chrono::milliseconds until(std::optional<TimePoint> time, TimePoint now);

}  // namespace troupe::transport
