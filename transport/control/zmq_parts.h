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
#include "transport/control/control_socket.h"
#include "transport/control/endpoint.h"
#include "transport/control/zap.h"

/// Helpers that the sockets of this folder share. Other folders must not use them: they name
/// ZeroMQ.
namespace troupe::transport {

/// Messages that a loop reads before it looks at its other duties.
constexpr int fair_share = 256;
/// The most messages that are read after a connection has ended.
constexpr int last_words = 1 << 16;

/// Wakes a poll loop from another thread, by a descriptor that the loop waits for.
class Wake {
 public:
  Wake();
  ~Wake();
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;

  int descriptor() const { return descriptor_; }
  void ring();
  void clear();

 private:
  int descriptor_;
};

/// A bounded queue from any thread to the thread of a socket.
template <class T>
class Handover {
 public:
  explicit Handover(const LinkOptions& link) : most_(link.queue), most_bytes_(link.queue_bytes) {}

  /// Returns false if the queue is full.
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
  Wake& wake() { return wake_; }

 private:
  std::size_t most_;
  std::size_t most_bytes_;
  std::mutex mutex_;
  std::vector<T> items_;
  std::size_t bytes_ = 0;
  Wake wake_;
};

/// Reports the connections of a socket. Make it before the socket binds or connects, and destroy it
/// before the socket.
class Monitor {
 public:
  struct Event {
    int what = 0;   // ZMQ_EVENT_...
    int value = 0;  // A descriptor, an errno or a status, depending on `what`.
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

/// The parts of one multipart message.
class Parts {
 public:
  /// Reads a message and keeps at most `most` parts of it. Returns false if nothing has come.
  bool receive(zmq::socket_t& socket, std::size_t most);

  std::size_t kept() const { return messages_.size(); }
  bool all_kept() const { return all_kept_; }
  std::string_view operator[](std::size_t i) const { return messages_[i].to_string_view(); }
  /// Returns the parts from `first` on. They are valid until the next receive().
  std::vector<std::string_view> from(std::size_t first) const;
  std::vector<std::string> copy() const;

  /// Returns a property of the sender; empty if ZeroMQ does not know it.
  std::string property(const char* name) const;
  /// Returns the descriptor of the connection, or -1 if unknown. It may be closed, or belong to
  /// another connection by now.
  int descriptor() const;

 private:
  std::vector<zmq::message_t> messages_;
  bool all_kept_ = true;
};

/// Sends all parts or none. Returns 0 or an error number. The socket must not block.
int send_parts(zmq::socket_t& socket, std::optional<std::string_view> routing_id,
               const std::vector<std::string>& parts);

void set_link_options(zmq::socket_t& socket, const LinkOptions& link, const Endpoint& endpoint);
/// Turns on the pings of a dialing end, which also tell the far end how long this end may be
/// silent.
void ask_far_end(zmq::socket_t& socket, const LinkOptions& link);
/// Turns on TCP keep-alive for a listening end. ZeroMQ's own pings are not safe there: on a
/// connection that has ended while more than `rcvhwm` messages wait, ZeroMQ 4.3.4 fails an
/// assertion, so that a peer that sends much and hangs up would end the process.
void let_system_ask(zmq::socket_t& socket);
/// Sets the keys of a listening end, and makes ZeroMQ ask which peers get in.
void set_server_keys(zmq::socket_t& socket, const std::optional<KeyPair>& keys);
/// Sets the keys of a dialing end.
void set_client_keys(zmq::socket_t& socket, const std::optional<KeyPair>& keys,
                     const std::string& server_key);

/// Binds the socket and returns its endpoint.
Result<std::string> bind_socket(zmq::socket_t& socket, const Endpoint& endpoint);

/// Removes the file of an ipc endpoint, which ZeroMQ leaves behind. Call it before the socket
/// closes, while no other process can have bound the file.
void remove_socket_file(const std::string& bound);

/// Makes the socket on which ZeroMQ asks which peers get in. Make it before the other socket binds.
zmq::socket_t zap_socket(zmq::context_t& context);
/// Answers the next question, and calls `refused` for a refused peer. Returns false without one.
bool answer_next(zmq::socket_t& zap, const AllowList& allowed,
                 const std::function<void(const ZapAnswer&)>& refused);

/// Fails if plain messages would leave the machine without permission, or keys are malformed.
Status check_security(const Endpoint& endpoint, const std::optional<KeyPair>& keys,
                      LinkOptions::Plain plain);

/// Returns the far end of a connection: "10.0.0.7:40112" or "process 4711"; nothing if the
/// descriptor is no connection.
std::optional<std::string> far_end(int descriptor);

/// Returns the bytes received on a TCP connection; nothing for other connections.
std::optional<std::uint64_t> bytes_received(int descriptor);

/// Ends the connection of a descriptor, unless the descriptor has another far end by now.
void shut(int descriptor, const std::string& far_end);

std::size_t bytes_of(const std::vector<std::string>& parts);

/// Waits until one of the items is ready. A signal may end the wait early.
void wait_for(std::vector<zmq_pollitem_t>& items, std::chrono::milliseconds time);

/// Blocks signals in this thread; other threads handle them. Call it first in each thread.
void block_signals();

/// Returns the milliseconds until `time` for poll(), rounded up and at least 0; -1 without a time.
std::chrono::milliseconds until(std::optional<TimePoint> time, TimePoint now);

}  // namespace troupe::transport
