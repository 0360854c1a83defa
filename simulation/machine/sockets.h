#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulation/machine/wires.h"
#include "transport/channels/door.h"
#include "transport/channels/socket.h"
#include "transport/control/allow_list.h"
#include "transport/control/backoff.h"
#include "transport/control/control_peers.h"
#include "transport/control/control_socket.h"
#include "transport/control/publisher.h"

/// The sockets of a simulated network. For the sources of network.h only.
namespace troupe::simulation {

/// A queue of a socket, for its own tasks.
class OwnQueue {
 public:
  OwnQueue(Scheduler& scheduler, ProcessId process, std::string name)
      : scheduler_(scheduler), queue_(scheduler.add_queue(process, std::move(name))) {}
  ~OwnQueue() { scheduler_.remove(queue_); }
  OwnQueue(const OwnQueue&) = delete;
  OwnQueue& operator=(const OwnQueue&) = delete;

  void post(Scheduler::Task task) { scheduler_.post(queue_, std::move(task)); }
  Scheduler::Timer after(Scheduler::Duration time, Scheduler::Task task) {
    return scheduler_.after(queue_, time, std::move(task));
  }
  void cancel(Scheduler::Timer timer) { scheduler_.cancel(timer); }

 private:
  Scheduler& scheduler_;
  QueueId queue_;
};

/// The first packet of a dialing end. The answer is one part: why it is refused, or nothing.
struct Greeting {
  enum class Kind : std::uint8_t { client, subscriber };

  Kind kind = Kind::client;
  std::string public_key;                             // Empty without keys.
  std::string head_key;                               // The key that the dialing end expects.
  std::chrono::nanoseconds silence{0}, ask_every{0};  // As in LinkOptions.
  std::string topic;

  Parts parts() const;
  static std::optional<Greeting> read(const Parts& parts);
};

/// A listening end of the control plane.
class ListeningEnd {
 public:
  /// All references outlive it.
  struct Options {
    Greeting::Kind kind;
    const transport::LinkOptions& link;
    const std::optional<transport::KeyPair>& keys;
    const transport::AllowList& allowed;
    transport::Counters& counters;
    std::function<void(const std::string& address, const std::string& why)> refused;
  };

  ListeningEnd(Wires& wires, const Wires::Party& who, Options options)
      : wires_(wires),
        who_(who),
        options_(std::move(options)),
        crowd_(options_.link.crowd),
        telling_(transport::limit_of_refusals()) {}

  Status open(const std::string& endpoint, Listening& owner);
  const std::string& endpoint() const { return endpoint_; }

  /// Returns the greeting of a peer, if it is welcome, and answers it. Otherwise closes the
  /// connection.
  std::optional<Greeting> welcome(Plug& plug, const Parts& hello);
  transport::Connection connection_of(const Plug& plug) const;
  /// Returns connections that are too many.
  std::vector<transport::Crowd::TooMany> add(const transport::Connection& connection);
  transport::Crowd& crowd() { return crowd_; }
  /// Reports a refusal, at most once a minute per address.
  void tell_refused(const std::string& address, const std::string& why);

 private:
  std::string refusal_of(const Plug& plug, const Greeting& greeting);

  Wires& wires_;
  Wires::Party who_;
  Options options_;
  transport::Crowd crowd_;
  transport::RateLimit telling_;
  ListeningPlace place_;
  std::string endpoint_;
};

/// A dialing end of the control plane, which connects again and again.
class DialingEnd : private Plugged {
 public:
  DialingEnd(Wires& wires, const Wires::Party& who, transport::DialOptions options,
             Greeting greeting);
  virtual ~DialingEnd() = default;

  /// Fails if dialing can never succeed.
  Status check();

 protected:
  virtual bool may_read() const = 0;
  virtual void connected() = 0;
  virtual void failed(const std::string& why) = 0;
  virtual void heard(const Parts& parts) = 0;
  /// The connection has ended. Must call hang_up().
  virtual void ended(const std::string& why) = 0;

  void dial();
  void hang_up();
  void succeed() { backoff_.reset(); }
  bool is_connected() const { return is_connected_; }
  Plug& plug() { return plug_; }
  OwnQueue& queue() { return queue_; }
  bool is_alive() const { return wires_.scheduler().is_alive(who_.process); }
  bool has_full_queues() const { return wires_.has_full_queues(who_.machine); }
  const transport::DialOptions& options() const { return options_; }

 private:
  bool reads() const override { return !is_connected_ || may_read(); }
  void hear(Parts parts) override;
  void over(Over why) override;
  void fail(const std::string& why);

  Wires& wires_;
  Wires::Party who_;
  transport::DialOptions options_;
  Greeting greeting_;
  transport::Endpoint endpoint_;
  transport::Backoff backoff_;
  OwnQueue queue_;
  Scheduler::Timer timer_{};  // The end of an attempt, or the start of the next one.
  bool is_connected_ = false;
  Plug plug_;
};

Result<std::unique_ptr<transport::ControlServer>> make_server(Wires& wires, const Wires::Party& who,
                                                              transport::ServerOptions options,
                                                              transport::ServerEvents events,
                                                              Loop& loop);
Result<std::unique_ptr<transport::ControlClient>> make_client(Wires& wires, const Wires::Party& who,
                                                              transport::DialOptions options,
                                                              transport::ClientEvents events,
                                                              Loop& loop);
Result<std::unique_ptr<transport::Publisher>> make_publisher(Wires& wires, const Wires::Party& who,
                                                             transport::PublisherOptions options);
Result<std::unique_ptr<transport::Subscriber>> make_subscriber(
    Wires& wires, const Wires::Party& who, transport::DialOptions options, std::string topic,
    transport::SubscriberEvents events, Loop& loop);
Result<std::unique_ptr<transport::Door>> make_door(Wires& wires, const Wires::Party& who,
                                                   const std::string& at,
                                                   const transport::DoorOrder& order);

class Knock;
/// The senders that a loop connects, one after another.
struct KnockLine {
  std::weak_ptr<Knock> first;
  std::deque<std::weak_ptr<Knock>> waiting;
};

/// Connects senders. As over real sockets, those of one loop wait for each other.
class SenderDials {
 public:
  SenderDials(Wires& wires, const Wires::Party& who) : wires_(wires), who_(who) {}

  void connect(const std::string& to, transport::Sending sending, Loop& loop,
               std::function<void(Result<std::unique_ptr<transport::Sender>>)> then);

 private:
  Wires& wires_;
  Wires::Party who_;
  // The senders own the line, and the loop owns the senders: a line of a loop that is gone has
  // expired.
  std::vector<std::pair<const Loop*, std::weak_ptr<KnockLine>>> lines_;
};

/// As notice_lost_path(): the system asks the other one, whatever the processes do.
constexpr Patience patience_of_paths{.silence = std::chrono::seconds(2),
                                     .slack = std::chrono::seconds(1),
                                     .needs_process = false,
                                     .needs_answers = true};
static_assert(patience_of_paths.silence == transport::path_patience);

/// Returns where a door is: a TCP address, or the address of a door in shared memory.
Result<transport::Endpoint> endpoint_of_door(const std::string& tcp);
transport::Endpoint endpoint_of_shm_door(const std::string& address);

/// Returns the bytes of a struct as a part, and back. A part of another size gives nothing.
template <class T>
std::string to_part(const T& thing) {
  return {reinterpret_cast<const char*>(&thing), sizeof thing};
}
template <class T>
std::optional<T> from_part(const std::string& part) {
  T thing;
  if (part.size() != sizeof thing) return std::nullopt;
  std::copy(part.begin(), part.end(), reinterpret_cast<char*>(&thing));
  return thing;
}

}  // namespace troupe::simulation
