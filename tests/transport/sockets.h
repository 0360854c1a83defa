#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/threads/real_env.h"
#include "transport/control/control_socket.h"
#include "transport/real_network.h"

/// Helpers for tests of sockets: both ends with a record of their events, and ends that misbehave.

/// Longer than any operation takes on a busy machine; a longer wait fails the test.
constexpr std::chrono::seconds patience{30};

/// A list that another thread appends to and a test waits for.
template <class T>
class Told {
 public:
  void add(T thing) {
    const std::lock_guard lock(mutex_);
    things_.push_back(std::move(thing));
    added_.notify_all();
  }
  /// Waits for `count` entries. Returns whether they came in time.
  bool wait(std::size_t count = 1) {
    std::unique_lock lock(mutex_);
    return added_.wait_for(lock, patience, [&] { return things_.size() >= count; });
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return things_.size();
  }
  T operator[](std::size_t i) {
    const std::lock_guard lock(mutex_);
    return things_.at(i);
  }

 private:
  std::mutex mutex_;
  std::condition_variable added_;
  std::vector<T> things_;
};

/// Returns long limits, so that a busy machine is not taken for a silent peer.
troupe::transport::LinkOptions patient_link();
troupe::transport::ServerOptions server_options(std::string endpoint = "tcp://127.0.0.1:0");
troupe::transport::DialOptions dial_options(const std::string& endpoint);

troupe::transport::Message message_of(std::string type, std::uint64_t id = 0);

/// The network of one end, with the loop on which its callbacks run.
struct OwnNetwork {
  troupe::RealEnv env;
  troupe::transport::RealNetwork network;
  std::unique_ptr<troupe::Loop> loop = env.make_loop({"callbacks"});
};

struct Head {
  struct Said {
    troupe::transport::Peer peer;
    troupe::transport::Message message;
  };
  struct Ended {
    troupe::transport::Peer peer;
    troupe::transport::Gone gone;
    std::string why;
  };

  explicit Head(troupe::transport::ServerOptions options = server_options());

  Told<troupe::transport::Peer> connected;
  Told<Said> messages;
  Told<Ended> gone;
  Told<std::string> refused;

  /// Calls `answer` in the callback of each message from now on, before the message is recorded.
  using Answer =
      std::function<void(const troupe::transport::Peer&, const troupe::transport::Message&)>;
  void answer_with(Answer answer);

 private:
  std::mutex answering_;
  Answer answer_;

 public:
  OwnNetwork own;
  std::unique_ptr<troupe::transport::ControlServer> socket;  // Destroyed first.
};

/// A client that says hello on each connection.
struct Node {
  struct Ended {
    troupe::transport::Gone gone;
    std::string why;
  };

  explicit Node(troupe::transport::DialOptions options, std::uint64_t incarnation = 1);

  Told<int> connected;
  Told<troupe::transport::Message> messages;
  Told<Ended> gone;
  Told<std::string> refused;
  OwnNetwork own;
  std::unique_ptr<troupe::transport::ControlClient> socket;  // Destroyed first.
};

/// A TCP connection that sends whatever a test wants.
class RawConnection {
 public:
  explicit RawConnection(const std::string& endpoint);
  /// Takes over a connected socket.
  explicit RawConnection(int socket) : socket_(socket) {}
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  /// Sends bytes. Drops what does not fit, since the other end may have closed.
  void send(std::string_view bytes);
  /// Closes the sending half.
  void finish();
  /// Reads until the other end closes; returns false if it does not in time.
  bool closed();
  /// Returns how often the bytes have come so far.
  std::size_t times(std::string_view bytes) const;
  /// Reads until the bytes come.
  bool wait_for(std::string_view bytes);
  const std::string& received() const { return read_; }

  /// Sends the greeting of a ZeroMQ socket of this type (ZMTP 3.0, no keys), and waits for the
  /// other end's greeting.
  bool shake_hands(const std::string& type = "DEALER");
  /// Sends the greeting without waiting.
  void greet(const std::string& type = "DEALER");
  /// Sends the parts of a message as ZMTP frames.
  void send_message(const std::vector<std::string>& parts);

 private:
  bool read_more();

  int socket_;
  std::string read_;
  bool ended_ = false;
};

/// Makes the current thread another user of this machine, as seen by the sockets that it opens.
/// Requires root.
class AnotherUser {
 public:
  static constexpr uid_t user = 65534;

  AnotherUser();
  ~AnotherUser();
  AnotherUser(const AnotherUser&) = delete;
  AnotherUser& operator=(const AnotherUser&) = delete;
};

/// A listener that accepts connections and hands them over.
class RawListener {
 public:
  RawListener();
  ~RawListener();
  RawListener(const RawListener&) = delete;
  RawListener& operator=(const RawListener&) = delete;

  const std::string& endpoint() const { return endpoint_; }
  RawConnection accept() const;

 private:
  int socket_;
  std::string endpoint_;
};

/// Returns the parts of a valid message.
std::vector<std::string> parts_of(const troupe::transport::Message& message);

/// Returns the bytes in use on the heap.
std::size_t heap_bytes();
