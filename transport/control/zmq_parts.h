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

/// Helpers of this folder's sockets. Not for other folders, since they name ZeroMQ.
namespace troupe::transport {

/// The most messages that one turn of a loop reads.
constexpr int fair_share = 256;
/// The most messages that are read after a connection has ended.
constexpr int last_words = 1 << 16;

/// A bounded queue from any thread to the thread of a socket.
template <class T>
class Handover {
 public:
  /// `reserve`: as many items more wait than messages may.
  explicit Handover(const LinkOptions& link, std::size_t reserve = 0)
      : most_(link.queue), reserve_(reserve), most_bytes_(link.queue_bytes) {}

  /// Adds a message. Returns false if the queue is full.
  bool push(T item, std::size_t bytes) { return push(std::move(item), bytes, most_); }
  /// Adds an order about a session, for which messages leave room.
  bool push_order(T item) { return push(std::move(item), 0, most_ + reserve_); }
  std::vector<T> take() {
    wake_.clear();
    const std::lock_guard lock(mutex_);
    bytes_ = 0;
    return std::exchange(items_, {});
  }
  EventFd& wake() { return wake_; }

 private:
  bool push(T item, std::size_t bytes, std::size_t most) {
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      if (items_.size() >= most || bytes > most_bytes_ - bytes_) return false;
      first = items_.empty();
      bytes_ += bytes;
      items_.push_back(std::move(item));
    }
    if (first) wake_.ring();
    return true;
  }

  std::size_t most_;
  std::size_t reserve_;
  std::size_t most_bytes_;
  std::mutex mutex_;
  std::vector<T> items_;
  std::size_t bytes_ = 0;
  EventFd wake_;
};

/// Reports events of a socket's connections. Create it before the socket is bound or connected, and
/// destroy it before the socket.
class Monitor {
 public:
  struct Event {
    int what = 0;   // A ZMQ_EVENT_ constant.
    int value = 0;  // A descriptor, an errno or a status.
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

/// The parts of one message.
class Parts {
 public:
  /// Receives a message and keeps at most `most` parts. Returns false if there is none.
  bool receive(zmq::socket_t& socket, std::size_t most);

  std::size_t kept() const { return messages_.size(); }
  bool all_kept() const { return all_kept_; }
  std::string_view operator[](std::size_t i) const { return messages_[i].to_string_view(); }
  /// Returns the parts from `first` on, valid until the next receive().
  std::vector<std::string_view> from(std::size_t first) const;
  std::vector<std::string> copy() const;

  /// Returns what ZeroMQ knows of the sender, or an empty text.
  std::string property(const char* name) const;
  /// Returns the connection's descriptor, or -1. It may be closed already, or belong to another.
  int descriptor() const;

 private:
  std::vector<zmq::message_t> messages_;
  bool all_kept_ = true;
};

/// Sends all parts or none, on a non-blocking socket. Returns an errno, or 0.
int send_parts(zmq::socket_t& socket, std::optional<std::string_view> routing_id,
               const std::vector<std::string>& parts);

void set_link_options(zmq::socket_t& socket, const LinkOptions& link, const Endpoint& endpoint);
/// For a dialing end: sends heartbeats, and tells the peer for how long this end may be silent.
void ask_far_end(zmq::socket_t& socket, const LinkOptions& link);
/// For a listening end: uses TCP keepalive instead of ZeroMQ's heartbeats. With those, ZeroMQ 4.3.4
/// fails an assertion when a connection ends while more than `rcvhwm` messages wait, so a peer that
/// sends much and hangs up could end the process.
void let_system_ask(zmq::socket_t& socket);
/// For a listening end: sets its keys and asks for admission.
void set_server_keys(zmq::socket_t& socket, const std::optional<KeyPair>& keys);
/// For a dialing end.
void set_client_keys(zmq::socket_t& socket, const std::optional<KeyPair>& keys,
                     const std::string& server_key);

/// Binds the socket and returns its actual endpoint.
Result<std::string> bind_socket(zmq::socket_t& socket, const Endpoint& endpoint);

/// Removes the file of an ipc endpoint, which ZeroMQ leaves behind. Call it before the socket is
/// closed, while nobody else can have the path.
void remove_socket_file(const std::string& bound);

/// Returns the socket for ZeroMQ's admission requests. Make it before binding the other one.
zmq::socket_t zap_socket(zmq::context_t& context);
/// Answers one admission request, and reports a refusal. Returns false if there is none.
bool answer_next(zmq::socket_t& zap, const AllowList& allowed,
                 const std::function<void(const ZapAnswer&)>& refused);

/// Returns the peer of a descriptor, like "10.0.0.7:40112" or "process 4711", or nothing.
std::optional<std::string> far_end(int descriptor);

/// Returns the bytes received on a TCP connection, or nothing for other kinds.
std::optional<std::uint64_t> bytes_received(int descriptor);

/// Ends a descriptor's connection if its peer is still `far_end`.
void shut(int descriptor, const std::string& far_end);

std::size_t bytes_of(const std::vector<std::string>& parts);

/// Waits until an item is ready. A signal may end the wait early.
void wait_for(std::vector<zmq_pollitem_t>& items, std::chrono::milliseconds time);

/// Blocks all signals in this thread, which other threads handle. Call it first in a new thread.
void block_signals();

/// Returns the milliseconds until then for poll(): rounded up, at least 0, or -1 for never.
std::chrono::milliseconds until(std::optional<TimePoint> time, TimePoint now);

}  // namespace troupe::transport
