#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/control/control_socket.h"

/// What the tests of sockets share: both ends with all that they tell written down, and ends that
/// do not behave.

/// Longer than anything takes on a busy machine; who waits in vain fails.
constexpr std::chrono::seconds patience{30};

/// What another thread tells, for a test to wait for.
template <class T>
class Told {
 public:
  void add(T thing) {
    const std::lock_guard lock(mutex_);
    things_.push_back(std::move(thing));
    added_.notify_all();
  }
  /// Whether so many were told in time.
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

/// Patient, so that a busy machine is not taken for a silent peer.
troupe::transport::LinkOptions patient_link();
troupe::transport::ServerOptions server_options(std::string endpoint = "tcp://127.0.0.1:0");
troupe::transport::DialOptions dial_options(const std::string& endpoint);

troupe::transport::Message message_of(std::string type, std::uint64_t id = 0);

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

  /// Called from now on for each message, on the socket's thread, before it is written down.
  using Answer =
      std::function<void(const troupe::transport::Peer&, const troupe::transport::Message&)>;
  void answer_with(Answer answer);

 private:
  std::mutex answering_;
  Answer answer_;

 public:
  std::unique_ptr<troupe::transport::ControlServer> socket;  // Ends first.
};

/// Says hello whenever it is connected.
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
  std::promise<void> ready;
  std::unique_ptr<troupe::transport::ControlClient> socket;  // Ends first.
};

/// A TCP connection that says whatever a test wants.
class RawConnection {
 public:
  explicit RawConnection(const std::string& endpoint);
  /// Of a socket that is connected already.
  explicit RawConnection(int socket) : socket_(socket) {}
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  /// What does not fit any more is left out: the other end may have closed.
  void send(std::string_view bytes);
  /// Says that nothing more will come.
  void finish();
  /// Reads until the other end has closed; false where it does not in time.
  bool closed();
  /// How often the bytes have come so far.
  std::size_t times(std::string_view bytes) const;
  /// Reads until the bytes come.
  bool wait_for(std::string_view bytes);
  const std::string& received() const { return read_; }

  /// Says what a ZeroMQ socket of a type says first (ZMTP 3.0, no keys), and waits for the
  /// other end to have done so.
  bool shake_hands(const std::string& type = "DEALER");
  /// The same without waiting.
  void greet(const std::string& type = "DEALER");
  /// The parts of one message, as ZMTP has them.
  void send_message(const std::vector<std::string>& parts);

 private:
  bool read_more();

  int socket_;
  std::string read_;
  bool ended_ = false;
};

/// The thread that has it is another user of this machine, as far as the sockets that it opens
/// tell. Only root can be that.
class AnotherUser {
 public:
  static constexpr uid_t user = 65534;

  AnotherUser();
  ~AnotherUser();
  AnotherUser(const AnotherUser&) = delete;
  AnotherUser& operator=(const AnotherUser&) = delete;
};

/// Listens, and does nothing with those who come but hand them over.
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

/// The parts of a good message.
std::vector<std::string> parts_of(const troupe::transport::Message& message);

/// What the program's heap holds.
std::size_t heap_bytes();
