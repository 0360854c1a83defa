#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "simulation/machine/cord.h"
#include "simulation/machine/wires.h"
#include "transport/wire/wire.h"

namespace troupe::simulation {
namespace {

std::string for_time(const std::optional<Scheduler::Duration>& time) {
  if (!time) return "";
  return " for " +
         std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(*time).count()) +
         " ms";
}

std::optional<transport::Message> message_of(const Parts& parts) {
  const std::vector<std::string_view> views(parts.begin(), parts.end());
  auto message = transport::decode(views);
  if (!message) return {};
  return std::move(*message);
}

}  // namespace

void Wires::note_fault(const std::string& what) { scheduler_.trace("fault", what); }

void Wires::set_cut(std::size_t number, bool forth, bool back, std::optional<Duration> time) {
  auto& path = paths_[number];
  path.is_cut = forth;
  path.is_cut_back = back;
  const auto cut = ++path.cuts;
  resume_path(number);
  review_all();
  if (!time) return;
  scheduler_.after(queue_, *time, [this, number, cut] {
    if (paths_[number].cuts == cut) set_cut(number, false, false, {});
  });
}

void Wires::resume_path(std::size_t path) {
  for (const auto& cord : all_cords()) {
    if (cord->path != path) continue;
    resume(cord, Side::dialing);
    resume(cord, Side::listening);
  }
}

void Wires::cut(MachineId from, MachineId to, Ways ways, std::optional<Duration> time) {
  note_fault("nothing passes from " + name(from) + (ways == Ways::both ? " to or from " : " to ") +
             name(to) + for_time(time));
  const bool forth = from < to || ways == Ways::both, back = to < from || ways == Ways::both;
  set_cut(path_between(from, to), forth, back, time);
}

void Wires::heal(MachineId one, MachineId other) {
  note_fault("everything passes between " + name(one) + " and " + name(other) + " again");
  set_cut(path_between(one, other), false, false, {});
}

bool Wires::is_cut(MachineId from, MachineId to) const {
  for (const auto& path : paths_) {
    if (path.is_relay) continue;
    if (path.one == from && path.other == to) return path.is_cut;
    if (path.one == to && path.other == from) return path.is_cut_back;
  }
  return false;
}

void Wires::slow_down(MachineId one, MachineId other, Duration most, Duration time) {
  note_fault("packets between " + name(one) + " and " + name(other) + " take up to " +
             std::to_string(most / std::chrono::milliseconds(1)) + " ms" + for_time(time));
  auto& path = paths_[path_between(one, other)];
  path.slow_until = scheduler_.now() + time;
  path.slow_most = most;
}

void Wires::refuse(MachineId machine, Duration time) {
  note_fault(name(machine) + " refuses connections" + for_time(time));
  machines_[at(machine)].refuses_until = scheduler_.now() + time;
}

void Wires::fill_queues(MachineId machine, Duration time) {
  note_fault("the queues of " + name(machine) + " are full" + for_time(time));
  machines_[at(machine)].queues_full_until = scheduler_.now() + time;
}

void Wires::fail(MachineId machine) {
  note_fault(name(machine) + " is without power");
  machines_[at(machine)].has_failed = true;
  review_all();
}

void Wires::restart(MachineId machine) {
  note_fault(name(machine) + " starts again");
  machines_[at(machine)].has_failed = false;
  for (const auto& cord : all_cords())
    for (const auto side : {Side::dialing, Side::listening}) {
      auto& end = cord->end(side);
      if (end.who.machine != machine || !end.is_silent) continue;
      end.is_silent = false;
      auto& other = cord->end(other_side(side));
      // The other end uses or probes the connection within this time.
      other.last_due = std::max(other.last_due, scheduler_.now()) +
                       scheduler_.draw_time(Duration::zero(), std::chrono::seconds(1));
      push(cord, other_side(side), {}, Over::ended);
    }
  review_all();
}

std::vector<Wires::Connected> Wires::connections() const {
  std::vector<Connected> all;
  for (const auto& [number, cord] : cords_) {
    const auto& [dialing, listening] = cord->ends;
    if (dialing.is_open && listening.is_open && listening.owner && !cord->is_broken)
      all.push_back({number, dialing.who, listening.who});
  }
  return all;
}

void Wires::break_cord(const std::shared_ptr<Cord>& cord) {
  cord->is_broken = true;
  for (const auto side : {Side::dialing, Side::listening}) {
    if (!cord->end(side).is_open) continue;
    lose_some(*cord, side);
    push(cord, side, {}, Over::ended);
  }
}

bool Wires::end(std::uint64_t connection) {
  const auto found = cords_.find(connection);
  if (found == cords_.end() || found->second->is_broken) return false;
  const auto cord = found->second;
  note_fault("connection " + cord->name + " ends");
  break_cord(cord);
  return true;
}

void Wires::end_between(MachineId one, MachineId other) {
  const auto path = path_between(one, other);
  for (const auto& cord : all_cords())
    if (cord->path == path) (void)end(cord->number);
}

/// Returns the first arrival that is known to belong to the conversation that the dialing process
/// has now. It may have had another one, as somebody else.
std::uint64_t Wires::conversation_began(const Cord& cord) const {
  std::uint64_t began = arrivals_ + 1;
  const auto said = old_packets_.find(cord.name);
  if (said == old_packets_.end()) return began;
  std::uint64_t incarnation = 0;
  for (auto packet = said->second.rbegin(); packet != said->second.rend(); ++packet) {
    const auto message = message_of(packet->parts);
    if (!message) continue;
    if (packet->said_by != cord.end(Side::dialing).who.process) break;
    if (incarnation == 0) incarnation = message->incarnation;
    if (message->incarnation != incarnation) break;
    began = packet->arrival;
  }
  return began;
}

bool Wires::repeat(std::uint64_t connection, Side side) {
  const auto found = cords_.find(connection);
  if (found == cords_.end()) return false;
  const auto cord = found->second;
  const auto& end = cord->end(side);
  if (!end.is_open || !end.owner || cord->is_broken) return false;
  const auto old = old_packets_.find(cord->name + (side == Side::dialing ? " back" : ""));
  if (old == old_packets_.end()) return false;
  std::vector<const Parts*> fit;
  const auto began = side == Side::dialing ? conversation_began(*cord) : 0;
  for (const auto& packet : old->second) {
    if (packet.heard_by != end.who.process || packet.arrival < began) continue;
    // Its sender may send it again if it has a number.
    if (const auto message = message_of(packet.parts); message && message->seq != 0)
      fit.push_back(&packet.parts);
  }
  if (fit.empty()) return false;
  note_fault("an old message comes again on connection " + cord->name);
  push(cord, side, *fit[scheduler_.draw(fit.size())], std::nullopt);
  return true;
}

transport::Endpoint Wires::add_relay(MachineId machine, const transport::Endpoint& to) {
  transport::Endpoint here{transport::Endpoint::Kind::tcp, "127.0.0.1", 0, {}};
  do here.port = machines_[at(machine)].next_port++;
  while (is_taken(machine, here));
  paths_.emplace_back();
  paths_.back().one = paths_.back().other = machine;
  paths_.back().is_relay = true;
  relays_.push_back({machine, here.port, to, paths_.size() - 1});
  return here;
}

void Wires::cut_relays() {
  for (std::size_t path = 0; path < paths_.size(); ++path)
    if (paths_[path].is_relay) set_cut(path, true, true, {});
}

void Wires::end_over_relays() {
  for (const auto& cord : all_cords())
    if (paths_[cord->path].is_relay) (void)end(cord->number);
}

void Wires::close_all(ProcessId process) {
  std::vector<std::uint64_t> left;
  for (const auto& [number, place] : places_)
    if (place.who.process == process) left.push_back(number);
  for (const auto number : left) stop_listening(number);
  for (const auto& cord : all_cords())
    for (const auto side : {Side::dialing, Side::listening})
      if (cord->end(side).is_open && cord->end(side).who.process == process)
        close(cord, side, Plug::Rest::may_be_lost);
}

std::size_t Wires::places(ProcessId process) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      places_, [process](const auto& entry) { return entry.second.who.process == process; }));
}

std::size_t Wires::open_ends() const {
  std::size_t count = 0;
  for (const auto& [number, cord] : cords_)
    for (const auto& end : cord->ends)
      if (end.is_open) ++count;
  return count;
}

}  // namespace troupe::simulation
