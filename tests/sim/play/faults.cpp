#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "tests/sim/play/playing.h"

namespace troupe::simulation {
namespace {

using namespace std::chrono_literals;

constexpr auto decisions = "runs/tiny/decisions";

}  // namespace

/// Ends a fault.
void Playing::later(const Fault& fault, Scheduler::Task task) {
  if (fault.lasts) scheduler().after(world_, *fault.lasts, std::move(task));
}

/// Applies the faults that come when a head decides by a row.
void Playing::apply_moments(const std::string& point) {
  for (auto& fault : moments_)
    if (fault.times > 0 && point == actors::decide::to_string(*fault.when)) {
      --fault.times;
      // The head's own task goes on to its end.
      scheduler().after(world_, fault.later, [this, fault] { apply(fault); });
    }
  std::erase_if(moments_, [](const Fault& fault) { return fault.times == 0; });
}

void Playing::apply(const Fault& fault) {
  if (is_done()) return;
  ++played_.faults_reached.at(static_cast<std::size_t>(fault.kind));
  scheduler().trace("fault", to_text(fault));
  auto& place = place_of(fault.machine);
  auto& other = place_of(fault.other);
  auto& wires = cluster_.wires();
  switch (fault.kind) {
    case Kind::kill:
      if (!fault.lasts) place.is_kept = false;
      (place.is_kept ? place.process(fault.number) : place.first()).kill();
      break;
    case Kind::program_fault:
      place.process(1).fault();
      break;
    case Kind::crash:
      crash(place, fault);
      break;
    case Kind::freeze: {
      const auto process = place.process(fault.number).id();
      if (!scheduler().is_alive(process)) break;
      scheduler().freeze(process);
      later(fault, [this, process] { scheduler().thaw(process); });
      break;
    }
    case Kind::cut:
    case Kind::cut_one_way:
      wires.cut(place.machine.id, other.machine.id,
                fault.kind == Kind::cut ? Wires::Ways::both : Wires::Ways::one, fault.lasts);
      break;
    case Kind::end_of_links:
      wires.end_between(place.machine.id, other.machine.id);
      break;
    case Kind::delays:
      wires.slow_down(place.machine.id, other.machine.id, 1ms + Duration(fault.number * 3'000),
                      *fault.lasts);
      break;
    case Kind::old_message:
      repeat(fault);
      break;
    case Kind::slow_disk:
      place.machine.disk.set_times(0ns, Duration(fault.number * 100),
                                   fault.number % 2 == 0 ? "" : "ledger");
      later(fault, [&place] { place.machine.disk.set_times(0ns, 0ns); });
      break;
    case Kind::full_disk:
      place.machine.disk.set_capacity(fault.number % 20'000);
      later(fault, [&place] { place.machine.disk.set_capacity({}); });
      break;
    case Kind::failing_call:
      if (place.head)
        for (auto& run : runs_) run.monitor.reads_may_fail();
      place.machine.disk.fail_call(static_cast<std::int64_t>(fault.number % 200));
      break;
    case Kind::kill_at_call:
    case Kind::crash_at_call:
      end_at_call(place, fault);
      break;
    case Kind::kill_at_point:
      kill_at_point(place.process(fault.number), fault.number % 5);
      break;
    case Kind::full_queues:
      wires.fill_queues(place.machine.id, *fault.lasts);
      break;
    case Kind::stuck:
      if (!fault.part.empty())
        for (auto& run : runs_) run.monitor.steps_may_be_late();
      scheduler().stall_next(place.process(fault.number).id(), *fault.lasts,
                             std::string(fault.part));
      break;
    case Kind::refusals:
      wires.refuse(place.machine.id, *fault.lasts);
      break;
    case Kind::torn_decision:
      tear_decision(place);
      break;
    case Kind::damage:
      damage(place, runs_[fault.number % runs_.size()].monitor);
      break;
    case Kind::slow_jobs:
      place.machine.times.most = scenario_.slowest_job * 5 + 1ms;
      later(fault, [this, &place] { place.machine.times.most = scenario_.slowest_job; });
      break;
    case Kind::failing_jobs:
      place.machine.times.fault = "its memory is broken";
      if (fault.number % 2 == 1)
        *place.machine.times.fault += " at " + std::to_string(++places_broken_);
      later(fault, [&place] { place.machine.times.fault.reset(); });
      break;
    case Kind::kill_again:
      kill_again(place, fault, scheduler().now() + *fault.lasts);
      break;
    case Kind::second_head:
      if (place.head->is_ready && place.head->process->is_alive())
        watch_second(cluster_.start_head(place.machine), *place.head);
      break;
    default:
      act(fault);
  }
}

/// Rule 1: a head does not lead from the folder of another one that lives. It may once that one
/// has ended, but then the machine starts its own.
void Playing::watch_second(HeadLife& second, const HeadLife& first) {
  if (!second.process->is_alive()) return;
  if (second.is_ready) {
    if (first.process->is_alive()) violate(1, "two heads lead from one folder");
    return second.process->kill();
  }
  scheduler().after(world_, 1ms, [this, &second, &first] { watch_second(second, first); });
}

void Playing::damage(Place& place, Monitor& monitor) {
  if (place.machine.disk.flip_bit("runs/" + monitor.run() + "/checkpoints")) monitor.is_damaged();
}

void Playing::kill_again(Place& place, const Fault& fault, Scheduler::Time until) {
  if (scheduler().now() >= until || is_done()) return;
  if (place.process(fault.number).is_alive()) place.process(fault.number).kill();
  scheduler().after(world_, 5ms + Duration(fault.number * 500),
                    [this, &place, fault, until] { kill_again(place, fault, until); });
}

void Playing::crash(Place& place, const Fault& fault,
                    const std::optional<storage::Survival>& survival) {
  if (!place.has_power) return;
  place.has_power = false;
  ++place.crashes;
  notice_silence(place);
  cluster_.wires().fail(place.machine.id);
  place.first().kill();
  survival ? place.machine.disk.crash(*survival) : place.machine.disk.crash();
  if (place.head)
    for (auto& run : runs_) run.monitor.head_crashed();
  later(fault, [this, &place] {
    place.has_power = true;
    cluster_.wires().restart(place.machine.id);
    if (place.is_kept) start(place);
  });
}

/// The head notices soon that a machine is silent, if the ways to it were always good: then its
/// heartbeats were regular.
void Playing::notice_silence(Place& place) {
  for (const auto kind :
       {Kind::freeze, Kind::cut, Kind::cut_one_way, Kind::delays, Kind::end_of_links})
    if (place.head || is_drawn(kind)) return;
  scheduler().after(world_, 1500ms, [this, &place, crash = place.crashes] {
    const auto is_off = [&place, crash] { return !place.has_power && place.crashes == crash; };
    if (!is_off()) return;
    cluster_.request(head_machine(), "node.list", Value::Map{},
                     [this, &place, is_off](const apps::Reply& nodes) {
                       if (nodes && is_off())
                         runs_[0].monitor.is_without_power(place.machine.name, *nodes);
                     });
  });
}

/// Ends the head at one of its next calls to the disk.
void Playing::end_at_call(Place& place, const Fault& fault) {
  const auto calls = std::make_shared<std::uint64_t>(fault.number % 100);
  place.machine.disk.on_call([this, &place, fault, calls](const SimulatedDisk::Call& call) {
    if ((*calls)-- > 0) return;
    scheduler().trace("fault", std::string("at ") + call.what + " " + call.path);
    place.machine.disk.on_call({});
    scheduler().kill(call.process);
    // Nothing of the process runs any more when the power goes.
    if (fault.kind == Kind::crash_at_call)
      scheduler().after(world_, 0ns, [this, &place, fault] { crash(place, fault); });
  });
}

/// The head's machine loses its power before its next decision is safe: half of it is left.
void Playing::tear_decision(Place& place) {
  place.machine.disk.on_call([this, &place](const SimulatedDisk::Call& call) {
    if (std::string_view(call.what) != "sync" || call.path != decisions) return;
    place.machine.disk.on_call({});
    scheduler().kill(call.process);
    Fault fault;
    fault.lasts = 50ms;
    scheduler().after(world_, 0ns, [this, &place, fault] {
      crash(place, fault,
            storage::Survival{storage::Survival::Entries::kept, storage::Survival::Contents::torn});
    });
  });
}

/// Kills a process at one of the next points that its code names.
void Playing::kill_at_point(SimulatedProcess& process, std::uint64_t points) {
  if (!process.is_alive()) return;
  const auto left = std::make_shared<std::uint64_t>(points);
  process.env().on_point([this, left, id = process.id()](const std::string& name) {
    if ((*left)-- > 0) return;
    scheduler().trace("fault", "at " + name);
    scheduler().kill(id);
  });
}

void Playing::repeat(const Fault& fault) {
  const auto all = cluster_.wires().connections();
  if (all.empty()) return;
  cluster_.wires().repeat(all[fault.number % all.size()].number,
                          fault.number % 2 == 0 ? Side::dialing : Side::listening);
}

}  // namespace troupe::simulation
