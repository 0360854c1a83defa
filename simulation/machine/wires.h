#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "simulation/machine/plug.h"
#include "simulation/machine/scheduler.h"
#include "transport/control/endpoint.h"

namespace troupe::simulation {

/// Identifies a simulated machine. It keeps its id when it starts again.
enum class MachineId : std::uint32_t {};

/// The connections of a simulated cluster, within a machine and between machines. Each packet is an
/// event that the scheduler draws, after a delay that it draws. Packets of one direction of a
/// connection keep their order.
///
/// Faults may be called by any task. A cut loses nothing: packets wait until the way is healed, as
/// TCP would send them again. Both ends notice a long silence (Patience). It must outlive the
/// networks that use it.
class Wires {
 public:
  using Duration = Scheduler::Duration;
  using Time = Scheduler::Time;

  struct Options {
    /// How long a packet takes between two machines, and within one.
    Duration least = std::chrono::microseconds(20), most = std::chrono::microseconds(300);
    Duration least_within = std::chrono::microseconds(2),
             most_within = std::chrono::microseconds(30);
    /// The bytes that the system holds for each direction, besides the high water.
    std::size_t buffer = std::size_t{1} << 20;
    /// How many of its last packets each direction keeps for repeat().
    std::size_t kept = 0;
  };

  explicit Wires(Scheduler& scheduler) : Wires(scheduler, Options()) {}
  Wires(Scheduler& scheduler, const Options& options);
  ~Wires();
  Wires(const Wires&) = delete;
  Wires& operator=(const Wires&) = delete;

  Scheduler& scheduler() { return scheduler_; }

  /// Adds a machine with the next address: 10.0.0.1, 10.0.0.2 ... Others may use its name as well.
  MachineId add_machine(std::string name);
  const std::string& address(MachineId machine) const { return machines_[at(machine)].address; }
  const std::string& name(MachineId machine) const { return machines_[at(machine)].name; }

  // For the sockets of simulated processes.

  /// Somebody who listens, dials or is dialed.
  struct Party {
    MachineId machine{};
    ProcessId process{};
  };
  struct Bound {
    ListeningPlace place;
    transport::Endpoint endpoint;  // With the actual port.
  };
  /// Binds an endpoint. Fails as the system would.
  Result<Bound> listen(const Party& who, const transport::Endpoint& at, Listening& owner);
  /// Dials an endpoint. `owner` is called with what the other end says, or that it is over.
  Plug dial(const Party& who, const transport::Endpoint& to, Plugged& owner, Parts hello);
  void stop_listening(std::uint64_t number);

  // Faults.

  enum class Ways : std::uint8_t { one, both };
  /// Nothing passes from `from` to `to`, or in both directions, until the time has passed; without
  /// a time until heal(). A new cut replaces the one before.
  void cut(MachineId from, MachineId to, Ways ways, std::optional<Duration> time = {});
  void heal(MachineId one, MachineId other);
  bool is_cut(MachineId from, MachineId to) const;
  /// Packets between two machines take up to `most` until the time has passed.
  void slow_down(MachineId one, MachineId other, Duration most, Duration time);
  /// A machine refuses all new connections until the time has passed.
  void refuse(MachineId machine, Duration time);
  /// The queues of the control sockets of a machine are full: they take no message until the time
  /// has passed. A dialing end still takes the first message of a connection.
  void fill_queues(MachineId machine, Duration time);
  bool has_full_queues(MachineId machine) const {
    return machines_[at(machine)].queues_full_until > scheduler_.now();
  }
  /// A machine is without power: nothing leaves it any more, so that others only find it silent.
  /// The caller then kills its processes.
  void fail(MachineId machine);
  /// The machine has started again: connections of its life before end when others use them.
  void restart(MachineId machine);

  /// A connection that both ends use.
  struct Connected {
    std::uint64_t number = 0;
    Party dialing, listening;
  };
  /// Returns all connections, the oldest first.
  std::vector<Connected> connections() const;
  /// Ends a connection amid its packets: the first ones of those under way still come. Returns
  /// whether there is such a connection.
  bool end(std::uint64_t connection);
  /// Ends all connections between two machines like end(), or within one.
  void end_between(MachineId one, MachineId other);
  /// A packet that a process has heard before comes to it again: on this connection, or on one
  /// before it between these processes' names and this address. A dialing process hears only
  /// packets of its newest conversation again. Needs Options::kept. Returns whether there is one.
  bool repeat(std::uint64_t connection, Side at);

  /// Returns a TCP address of a machine, for processes of the same machine, from which everything
  /// is passed on to another one. Connections over it have ways of their own.
  transport::Endpoint add_relay(MachineId machine, const transport::Endpoint& to);
  void cut_relays();
  void end_over_relays();

  /// Calls a function with each packet that a living process sends, instead of the one before.
  void watch(std::function<void(const Party& from, const Party& to, const Parts&)> sent) {
    sent_ = std::move(sent);
  }

  /// Closes all connections of a process that has ended, and all that it listens at.
  void close_all(ProcessId process);
  /// Returns at how many places a process listens.
  std::size_t places(ProcessId process) const;
  /// Returns how many connections have an end that is open.
  std::size_t open_ends() const;
  std::uint64_t packets() const { return packets_; }

 private:
  friend class Plug;

  struct Machine {
    std::string name, address;
    bool has_failed = false;
    int next_port = 40'000;
    int next_dialing_port = 50'000;
    Time refuses_until{}, queues_full_until{};
  };
  /// The state that all connections between two machines share, or all over one relay.
  struct Path {
    MachineId one{}, other{};
    bool is_relay = false;
    bool is_cut = false, is_cut_back = false;  // From one to the other, and back.
    std::uint64_t cuts = 0;
    Time slow_until{};
    Duration slow_most{0};
  };
  struct Place {
    Party who;
    transport::Endpoint endpoint;
    Listening* owner = nullptr;
    bool is_open_to_all = false;
  };
  struct Relay {
    MachineId machine{};
    int port = 0;
    transport::Endpoint to;
    std::size_t path = 0;
  };

  bool may_send(const Party& who) const;
  static std::size_t at(MachineId machine) { return static_cast<std::size_t>(machine); }
  std::optional<MachineId> machine_of(const std::string& host, MachineId here) const;
  std::size_t path_between(MachineId one, MachineId other);
  bool is_taken(MachineId machine, const transport::Endpoint& at) const;
  const Place* find_place(MachineId from, MachineId at, const transport::Endpoint& to,
                          std::uint64_t& number) const;
  Duration delay(const Path& path);
  bool is_blocked(const Cord& cord, Side to) const;
  void push(const std::shared_ptr<Cord>& cord, Side to, Parts parts, std::optional<Over> over);
  void schedule(const std::shared_ptr<Cord>& cord, Side to);
  void arrive(const std::shared_ptr<Cord>& cord, Side to);
  void accept(const std::shared_ptr<Cord>& cord, Parts hello);
  void turn_away(const std::shared_ptr<Cord>& cord);
  void resume(const std::shared_ptr<Cord>& cord, Side to);
  void resume_path(std::size_t path);
  void lose_some(Cord& cord, Side to);
  std::uint64_t conversation_began(const Cord& cord) const;
  void close(const std::shared_ptr<Cord>& cord, Side side, Plug::Rest rest);
  void finish(const std::shared_ptr<Cord>& cord, Side side, Over why);
  void break_cord(const std::shared_ptr<Cord>& cord);
  void tidy(const std::shared_ptr<Cord>& cord);
  bool is_mute(const Cord& cord, Side side) const;
  void review(const std::shared_ptr<Cord>& cord, Side side);
  void review_all();
  void watch(const std::shared_ptr<Cord>& cord, Side side, Duration wait);
  void set_cut(std::size_t path, bool forth, bool back, std::optional<Duration> time);
  std::vector<std::shared_ptr<Cord>> all_cords() const;
  void note_fault(const std::string& what);

  Scheduler& scheduler_;
  Options options_;
  QueueId queue_;  // For the ends of faults.
  std::function<void(const Party& from, const Party& to, const Parts&)> sent_;
  std::vector<Machine> machines_;
  std::vector<Path> paths_;
  std::map<std::uint64_t, Place> places_;
  std::vector<Relay> relays_;
  std::map<std::uint64_t, std::shared_ptr<Cord>> cords_;
  struct OldPacket {
    ProcessId said_by{}, heard_by{};
    std::uint64_t arrival = 0;
    Parts parts;
  };
  std::map<std::string, std::deque<OldPacket>> old_packets_;
  std::uint64_t numbers_ = 0;
  std::uint64_t packets_ = 0;
  std::uint64_t arrivals_ = 0;
};

}  // namespace troupe::simulation
