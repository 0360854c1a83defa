#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::simulation {

class Wires;
struct Cord;

/// The content of one packet: the parts of a message, or a frame of a channel.
using Parts = std::vector<std::string>;

/// The reason why a connection is over, for one of its ends.
enum class Over : std::uint8_t {
  ended,    // The other end, its process or the connection ended.
  refused,  // Nobody listens there. For a dialing end only.
  silent,   // Nothing came for longer than Patience::silence.
};

/// The owner of an end of a connection. It is called in events of its process.
class Plugged {
 public:
  /// Returns false while the owner can take no packet: they wait, in order, until Plug::resume().
  virtual bool reads() const { return true; }
  virtual void hear(Parts parts) = 0;
  /// The last call. The owner may be destroyed within it.
  virtual void over(Over why) = 0;

 protected:
  ~Plugged() = default;
};

/// When an end takes silence for the end of the connection.
struct Patience {
  std::chrono::nanoseconds silence{0};  // 0: never.
  /// The latest further delay until the silence is noticed.
  std::chrono::nanoseconds slack{0};
  bool needs_process = false;  // A frozen process at the other end is silent.
  bool needs_answers = false;  // If nothing gets to the other end, nothing comes back.
};

enum class Side : std::uint8_t { dialing, listening };

/// One end of a connection, held by its owner. Destroying it closes the connection. All functions
/// do nothing once the process has ended, except that the other end learns of the end.
class Plug {
 public:
  Plug() = default;
  Plug(std::shared_ptr<Cord> cord, Side side) : cord_(std::move(cord)), side_(side) {}
  Plug(Plug&& other) noexcept : cord_(std::exchange(other.cord_, nullptr)), side_(other.side_) {}
  Plug& operator=(Plug&& other) noexcept;
  ~Plug() { close(); }

  explicit operator bool() const { return cord_ != nullptr; }
  /// Sets who is called from now on.
  void set_owner(Plugged& owner);
  void set_patience(const Patience& patience);
  /// Sets how many packets may wait for the other end before send() fails, besides those that fit
  /// into the buffers of the system.
  void set_high_water(std::size_t packets);
  /// From now on packets of both ends may come again by Wires::repeat().
  void allow_repeats();

  enum class Traced : std::uint8_t { yes, no };
  /// Sends a packet. Returns false if too many wait; then nothing is sent. Packets with random
  /// bytes that the scheduler did not draw are not traced.
  bool send(Parts parts, Traced traced = Traced::yes);
  /// Sends a number to the other end without an event there. Only the newest one counts.
  void tell(std::uint64_t number);
  /// Returns the newest number that the other end has told.
  std::uint64_t told();
  /// Returns it even if it is still on its way, unless nothing passes.
  std::uint64_t told_at_last();
  /// Lets packets that the owner did not read come.
  void resume();

  enum class Rest : std::uint8_t { may_be_lost, arrives };
  /// Closes the connection. The other end learns of it after the packets that still come: all that
  /// were sent, or the first ones.
  void close(Rest rest = Rest::may_be_lost);

  std::uint64_t number() const;
  /// Returns the address of the other end, like "10.0.0.7:40112" or "process 3".
  const std::string& far_end() const;
  /// Returns whether both ends are on one machine.
  bool stays_here() const;

 private:
  std::shared_ptr<Cord> cord_;
  Side side_ = Side::dialing;
};

/// The owner of an address. It is called in events of its process.
class Listening {
 public:
  /// Takes a connection, whose first packet is `hello`, or drops it.
  virtual void accept(Plug plug, Parts hello) = 0;

 protected:
  ~Listening() = default;
};

/// An address at which an owner listens, until it is destroyed.
class ListeningPlace {
 public:
  ListeningPlace() = default;
  ListeningPlace(Wires& wires, std::uint64_t number) : wires_(&wires), number_(number) {}
  ListeningPlace(ListeningPlace&& other) noexcept { *this = std::move(other); }
  ListeningPlace& operator=(ListeningPlace&& other) noexcept {
    std::swap(wires_, other.wires_);
    std::swap(number_, other.number_);
    return *this;
  }
  ~ListeningPlace();

 private:
  Wires* wires_ = nullptr;
  std::uint64_t number_ = 0;
};

}  // namespace troupe::simulation
