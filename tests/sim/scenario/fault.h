#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "actors/decide/run_machine.h"
#include "simulation/machine/scheduler.h"

namespace troupe::simulation {

/// A fault, or what a person does. Machine 0 has the head, all others have nodes.
struct Fault {
  enum class Kind : std::uint8_t {
    kill,           // A process of a machine is killed, and starts again.
    crash,          // A machine loses its power and its unsynced data, and starts again.
    freeze,         // A process does nothing.
    cut,            // Nothing passes between two machines,
    cut_one_way,    // or only in one direction.
    end_of_links,   // All connections between two machines end.
    delays,         // Packets between two machines take long.
    old_message,    // A message of an earlier time comes again.
    slow_disk,      // Calls to the disk of a machine take long.
    full_disk,      // The disk of a machine takes no more bytes.
    failing_call,   // One call fails that changes something.
    kill_at_call,   // A process is killed at one of its calls to the disk.
    crash_at_call,  // The same, and the machine loses its unsynced data.
    kill_at_point,  // The same, at a point that the code names.
    damage,         // A bit of a checkpoint turns over.
    slow_jobs,      // A machine computes slowly.
    drain,          // A person takes the work from a node,
    cordon,         // or keeps new work from it for a time,
    pause,          // pauses the run for a time,
    stop,           // stops it,
    save,           // saves it,
    submit,         // or submits it although it is there.
    failing_jobs,   // A device fails for ever, until its process starts again.
    kill_again,     // A process of a machine is killed again and again.
    torn_decision,  // The head loses its power as it writes down a decision: it is torn.
    refusals,       // A machine refuses all new connections.
    program_fault,  // A process of a machine ends by a fault of the program.
    second_head,    // Somebody starts another head on the folder of one that lives.
    full_queues,    // The control sockets of a machine take no message.
    stuck,          // A loop or an actor of a process does nothing.
  };
  static constexpr std::size_t kinds = 30;

  Kind kind = Kind::kill;
  Scheduler::Duration at{0};  // The time since the run was submitted.
  /// If set, it comes when a head next decides by this row after that time, so many times.
  std::optional<actors::decide::Row> when = {};
  Scheduler::Duration later{0};  // How much later it then comes.
  int times = 1;
  /// How long it takes. Nothing: it never ends.
  std::optional<Scheduler::Duration> lasts = {};
  int machine = 0;
  int other = 0;               // The other machine of a link.
  std::string_view part = {};  // The loop or actor that is stuck; empty: the one that runs next.
  std::uint64_t number = 0;    // The message, the call, or the slowness.
};
std::string_view name_of(Fault::Kind kind);
std::string to_text(const Fault& fault);
constexpr bool is_of_people(Fault::Kind kind) {
  return kind >= Fault::Kind::drain && kind <= Fault::Kind::submit;
}
constexpr bool is_of_link(Fault::Kind kind) {
  return kind >= Fault::Kind::cut && kind <= Fault::Kind::delays;
}
/// Returns the time as a text, such as "0.250 s".
std::string time_text(Scheduler::Duration time);

}  // namespace troupe::simulation
