#include "simulation/machine/wires.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <span>
#include <string_view>

#include "simulation/machine/cord.h"
#include "transport/wire/event_frame.h"
#include "transport/wire/wire.h"

namespace troupe::simulation {
namespace {

using transport::Endpoint;

bool is_any(const std::string& host) {
  return host == "*" || host == "0.0.0.0" || host == "[::]" || host == "::";
}

bool is_loopback(const Endpoint& endpoint) {
  return endpoint.kind == Endpoint::Kind::ipc || transport::is_local(endpoint);
}

/// Returns a line about a packet that arrives.
std::string told_of(const Parts& parts, const Cord& cord, Side to) {
  const std::vector<std::string_view> views(parts.begin(), parts.end());
  std::string what = std::to_string(parts.size()) + " parts";
  auto message = transport::decode(views);
  if (!message && views.size() == 1) message = transport::decode_event(views[0]);
  if (message) {
    what = message->type;
    if (message->seq != 0) what += " " + std::to_string(message->seq);
  }
  return "hears " + what + (to == Side::dialing ? " back" : "") + " on connection " +
         std::to_string(cord.number) + " of " + cord.name;
}

}  // namespace

Wires::Wires(Scheduler& scheduler, const Options& options)
    : scheduler_(scheduler),
      options_(options),
      queue_(scheduler.add_queue(Scheduler::world, "wires")) {
  scheduler_.watch_freezes([this] { review_all(); });
}

Wires::~Wires() {
  scheduler_.watch_freezes({});
  for (auto& [number, cord] : cords_) cord->wires = nullptr;
}

bool Wires::may_send(const Party& who) const {
  return scheduler_.is_alive(who.process) && !machines_[at(who.machine)].has_failed;
}

MachineId Wires::add_machine(std::string name) {
  const auto number = machines_.size() + 1;
  Machine machine;
  machine.name = std::move(name);
  machine.address = "10.0." + std::to_string(number / 256) + "." + std::to_string(number % 256);
  machines_.push_back(std::move(machine));
  return MachineId{static_cast<std::uint32_t>(number - 1)};
}

std::optional<MachineId> Wires::machine_of(const std::string& host, MachineId here) const {
  if (is_any(host) || transport::is_local({Endpoint::Kind::tcp, host, 1, {}})) return here;
  for (std::size_t i = 0; i < machines_.size(); ++i)
    if (machines_[i].address == host || machines_[i].name == host)
      return MachineId{static_cast<std::uint32_t>(i)};
  return std::nullopt;
}

std::size_t Wires::path_between(MachineId one, MachineId other) {
  if (other < one) std::swap(one, other);
  for (std::size_t i = 0; i < paths_.size(); ++i)
    if (!paths_[i].is_relay && paths_[i].one == one && paths_[i].other == other) return i;
  paths_.emplace_back();
  paths_.back().one = one;
  paths_.back().other = other;
  return paths_.size() - 1;
}

bool Wires::is_taken(MachineId machine, const Endpoint& where) const {
  for (const auto& relay : relays_)
    if (relay.machine == machine && where.kind == Endpoint::Kind::tcp && relay.port == where.port)
      return true;
  return std::any_of(places_.begin(), places_.end(), [&](const auto& entry) {
    const auto& place = entry.second;
    if (place.who.machine != machine || place.endpoint.kind != where.kind) return false;
    if (where.kind == Endpoint::Kind::ipc) return place.endpoint.path == where.path;
    return place.endpoint.port == where.port &&
           (place.endpoint.host == where.host || is_any(place.endpoint.host) || is_any(where.host));
  });
}

Result<Wires::Bound> Wires::listen(const Party& who, const Endpoint& where, Listening& owner) {
  Endpoint endpoint = where;
  auto& machine = machines_[at(who.machine)];
  if (!may_send(who)) return Error{transport::to_string(where) + ": this process has ended"};
  if (endpoint.kind == Endpoint::Kind::tcp) {
    if (machine_of(endpoint.host, who.machine) != who.machine)
      return transport::bind_error(where, EADDRNOTAVAIL);
    if (endpoint.port == 0) do
        endpoint.port = machine.next_port++;
      while (is_taken(who.machine, endpoint));
    if (endpoint.host == "*") endpoint.host = "0.0.0.0";
  }
  if (is_taken(who.machine, endpoint)) return transport::bind_error(where, EADDRINUSE);
  const auto number = ++numbers_;
  places_[number] = {who, endpoint, &owner,
                     endpoint.kind == Endpoint::Kind::tcp && is_any(endpoint.host)};
  return Bound{ListeningPlace(*this, number), endpoint};
}

void Wires::stop_listening(std::uint64_t number) {
  places_.erase(number);
  for (const auto& cord : all_cords()) {
    // Nobody will take these connections.
    auto& end = cord->end(Side::listening);
    if (cord->place == number && end.is_open && !end.owner) turn_away(cord);
  }
}

const Wires::Place* Wires::find_place(MachineId from, MachineId machine, const Endpoint& to,
                                      std::uint64_t& number) const {
  for (const auto& [found, place] : places_) {
    if (place.who.machine != machine || place.endpoint.kind != to.kind) continue;
    const bool fits =
        to.kind == Endpoint::Kind::ipc
            ? from == machine && place.endpoint.path == to.path
            : place.endpoint.port == to.port &&
                  (place.is_open_to_all || is_loopback(place.endpoint) == is_loopback(to));
    if (!fits) continue;
    number = found;
    return &place;
  }
  return nullptr;
}

Plug Wires::dial(const Party& who, const Endpoint& endpoint, Plugged& owner, Parts hello) {
  if (!may_send(who)) return {};
  const auto cord = std::make_shared<Cord>();
  cord->wires = this;
  cord->number = ++numbers_;
  cord->stays_here = is_loopback(endpoint);
  auto& here = cord->end(Side::dialing);
  here.who = who;
  here.owner = &owner;
  here.is_open = true;
  here.queue = scheduler_.add_queue(who.process, "wire " + std::to_string(cord->number));
  here.far_end = endpoint.kind == Endpoint::Kind::ipc
                     ? endpoint.path
                     : endpoint.host + ":" + std::to_string(endpoint.port);
  cords_[cord->number] = cord;

  Endpoint to = endpoint;
  const auto relay = std::find_if(relays_.begin(), relays_.end(), [&](const Relay& one) {
    return one.machine == who.machine && endpoint.kind == Endpoint::Kind::tcp && cord->stays_here &&
           one.port == endpoint.port;
  });
  if (relay != relays_.end()) to = relay->to;
  const auto machine =
      to.kind == Endpoint::Kind::ipc ? who.machine : machine_of(to.host, who.machine);
  cord->path = relay != relays_.end() ? relay->path
                                      : path_between(who.machine, machine.value_or(who.machine));
  auto& there = cord->end(Side::listening);
  there.who.machine = machine.value_or(who.machine);
  if (machines_[at(there.who.machine)].has_failed) {
    there.is_silent = true;
    return {cord, Side::dialing};
  }
  std::uint64_t number = 0;
  const auto* place = machine && machines_[at(*machine)].refuses_until <= scheduler_.now()
                          ? find_place(who.machine, *machine, to, number)
                          : nullptr;
  if (!place || !scheduler_.is_alive(place->who.process)) {
    push(cord, Side::dialing, {}, Over::refused);
    return {cord, Side::dialing};
  }
  there.who = place->who;
  there.is_open = true;
  there.queue =
      scheduler_.add_queue(there.who.process, "wire " + std::to_string(cord->number) + " in");
  auto& port = machines_[at(who.machine)].next_dialing_port;
  if (++port > 60'000) port = 50'000;
  there.far_end = endpoint.kind == Endpoint::Kind::ipc
                      ? "process " + std::to_string(static_cast<std::uint32_t>(who.process))
                      : (cord->stays_here ? "127.0.0.1" : machines_[at(who.machine)].address) +
                            ":" + std::to_string(port);
  cord->place = number;
  cord->name = scheduler_.name(who.process) + " to " + transport::to_string(place->endpoint);
  push(cord, Side::listening, std::move(hello), std::nullopt);
  return {cord, Side::dialing};
}

Wires::Duration Wires::delay(const Path& path) {
  if (scheduler_.now() < path.slow_until)
    return scheduler_.draw_time(options_.least, std::max(options_.least, path.slow_most));
  if (path.one == path.other)
    return scheduler_.draw_time(options_.least_within, options_.most_within);
  return scheduler_.draw_time(options_.least, options_.most);
}

/// Returns whether nothing passes to this end now.
bool Wires::is_blocked(const Cord& cord, Side to) const {
  const auto& path = paths_[cord.path];
  if (!path.is_cut && !path.is_cut_back) return false;
  const bool forth =
      path.is_relay ? to == Side::listening : cord.end(other_side(to)).who.machine == path.one;
  return forth ? path.is_cut : path.is_cut_back;
}

void Wires::push(const std::shared_ptr<Cord>& cord, Side to, Parts parts,
                 std::optional<Over> over) {
  auto& end = cord->end(to);
  if (!end.is_open) return;
  Cord::Packet packet{std::move(parts), 0, over, cord->may_repeat};
  for (const auto& part : packet.parts) packet.bytes += part.size();
  end.coming_bytes += packet.bytes;
  end.coming.push_back(std::move(packet));
  schedule(cord, to);
}

/// Lets the first packet that comes to an end arrive after a while.
void Wires::schedule(const std::shared_ptr<Cord>& cord, Side to) {
  auto& end = cord->end(to);
  end.last_due = std::max(end.last_due, scheduler_.now() + delay(paths_[cord->path]));
  if (end.patience.silence > Duration::zero() &&
      end.last_due - scheduler_.now() > end.patience.silence) {
    // Heartbeats are as late.
    end.late_until = end.last_due;
    review(cord, to);
  }
  scheduler_.after(end.queue, end.last_due - scheduler_.now(), [cord, to] {
    if (cord->wires) cord->wires->arrive(cord, to);
  });
}

void Wires::arrive(const std::shared_ptr<Cord>& cord, Side to) {
  auto& end = cord->end(to);
  if (!end.is_open || end.coming.empty()) return;
  if (is_blocked(*cord, to) || (end.owner && !end.owner->reads())) {
    ++end.stalled;
    return;
  }
  auto packet = std::move(end.coming.front());
  end.coming.pop_front();
  end.coming_bytes -= packet.bytes;
  end.last_heard = scheduler_.now();
  if (end.mute) review(cord, to);
  if (packet.over) return finish(cord, to, *packet.over);
  if (scheduler_.has_history())
    scheduler_.note(scheduler_.name(end.who.process), told_of(packet.parts, *cord, to));
  if (!end.owner) return accept(cord, std::move(packet.parts));
  if (packet.may_repeat && options_.kept > 0) {
    auto& kept = old_packets_[cord->name + (to == Side::dialing ? " back" : "")];
    kept.push_back(
        {cord->end(other_side(to)).who.process, end.who.process, ++arrivals_, packet.parts});
    if (kept.size() > options_.kept) kept.pop_front();
  }
  end.owner->hear(std::move(packet.parts));
}

void Wires::accept(const std::shared_ptr<Cord>& cord, Parts hello) {
  const auto place = places_.find(cord->place);
  if (place == places_.end()) return turn_away(cord);
  place->second.owner->accept(Plug(cord, Side::listening), std::move(hello));
}

/// Refuses a connection that nobody has taken.
void Wires::turn_away(const std::shared_ptr<Cord>& cord) {
  auto& end = cord->end(Side::listening);
  end.is_open = false;
  end.coming.clear();
  scheduler_.remove(end.queue);
  push(cord, Side::dialing, {}, Over::refused);
  tidy(cord);
}

/// Lets packets come whose time had come before.
void Wires::resume(const std::shared_ptr<Cord>& cord, Side to) {
  auto& end = cord->end(to);
  if (!end.is_open || is_blocked(*cord, to)) return;
  for (auto left = std::exchange(end.stalled, 0); left > 0; --left) schedule(cord, to);
}

/// Drops the last ones of the packets that come to an end: none, some or all.
void Wires::lose_some(Cord& cord, Side to) {
  auto& end = cord.end(to);
  const auto kept = scheduler_.draw(end.coming.size() + 1);
  for (; end.coming.size() > kept; end.coming.pop_back())
    end.coming_bytes -= end.coming.back().bytes;
  end.stalled = std::min(end.stalled, end.coming.size());
}

void Wires::close(const std::shared_ptr<Cord>& cord, Side side, Plug::Rest rest) {
  auto& here = cord->end(side);
  if (!here.is_open) return;
  const bool leaves_unread = std::any_of(here.coming.begin(), here.coming.end(),
                                         [](const Cord::Packet& packet) { return !packet.over; });
  here.is_open = false;
  here.owner = nullptr;
  here.coming.clear();
  scheduler_.remove(here.queue);
  const auto to = other_side(side);
  if (!cord->end(to).is_open) return tidy(cord);
  if (machines_[at(here.who.machine)].has_failed) {
    here.is_silent = true;
    return review(cord, to);
  }
  // As a system resets a connection whose data nobody has read.
  const bool is_reset = leaves_unread && scheduler_.draw(2) == 0;
  if (rest == Plug::Rest::may_be_lost || is_reset || !scheduler_.is_alive(here.who.process))
    lose_some(*cord, to);
  push(cord, to, {}, Over::ended);
}

/// Tells an end that the connection is over.
void Wires::finish(const std::shared_ptr<Cord>& cord, Side side, Over why) {
  auto& end = cord->end(side);
  auto* const owner = std::exchange(end.owner, nullptr);
  end.is_open = false;
  end.coming.clear();
  scheduler_.remove(end.queue);
  const auto to = other_side(side);
  if (why == Over::silent && cord->end(to).is_open) {
    lose_some(*cord, to);
    push(cord, to, {}, Over::ended);
  }
  tidy(cord);
  if (owner) owner->over(why);
}

void Wires::tidy(const std::shared_ptr<Cord>& cord) {
  if (!cord->ends[0].is_open && !cord->ends[1].is_open) cords_.erase(cord->number);
}

std::vector<std::shared_ptr<Cord>> Wires::all_cords() const {
  std::vector<std::shared_ptr<Cord>> all;
  all.reserve(cords_.size());
  for (const auto& [number, cord] : cords_) all.push_back(cord);
  return all;
}

// Silence

bool Wires::is_mute(const Cord& cord, Side side) const {
  const auto& end = cord.end(side);
  const auto& there = cord.end(other_side(side));
  return scheduler_.now() < end.late_until || is_blocked(cord, side) || there.is_silent ||
         machines_[at(there.who.machine)].has_failed ||
         (end.patience.needs_process && scheduler_.is_frozen(there.who.process)) ||
         (end.patience.needs_answers && is_blocked(cord, other_side(side)));
}

/// Begins or ends to wait for a silence to become too long.
void Wires::review(const std::shared_ptr<Cord>& cord, Side side) {
  auto& end = cord->end(side);
  if (!end.is_open || end.patience.silence == Duration::zero() || !is_mute(*cord, side)) {
    end.mute.reset();
    return;
  }
  if (end.mute) return;
  end.mute = ++numbers_;
  const auto wait =
      end.patience.silence + scheduler_.draw_time(Duration::zero(), end.patience.slack);
  watch(cord, side, wait);
}

void Wires::watch(const std::shared_ptr<Cord>& cord, Side side, Duration wait) {
  scheduler_.after(cord->end(side).queue, wait, [this, cord, side, mute = *cord->end(side).mute] {
    auto& end = cord->end(side);
    if (!cord->wires || !end.is_open || end.mute != mute) return;
    const auto left = end.last_heard + end.patience.silence - scheduler_.now();
    if (left > Duration::zero()) return watch(cord, side, left);
    finish(cord, side, Over::silent);
  });
}

void Wires::review_all() {
  for (const auto& cord : all_cords()) {
    review(cord, Side::dialing);
    review(cord, Side::listening);
  }
}

}  // namespace troupe::simulation
