#include "tests/sim/play.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tests/sim/play/playing.h"

namespace troupe::simulation {
namespace {

using namespace std::chrono_literals;

/// A supervised head that fails before it has lived for so long is not started again
/// (apps/commands/head.cpp). Then systemd starts its supervisor again (package/systemd).
constexpr auto least_life = 2s;
constexpr auto restarted_by_systemd_after = 1s;
/// How long a fault waits for the decision at which it comes.
constexpr auto waits_for_moment = 4s;
/// The most tasks that may wait in a queue of a process.
constexpr std::size_t most_waiting = 600;

}  // namespace

Played Playing::play() {
  for (auto& place : places_) start(*place);
  std::ranges::copy_if(scenario_.faults, std::back_inserter(moments_),
                       [](const Fault& fault) { return fault.when && fault.at == 0s; });
  scheduler().watch_points([this](ProcessId, const std::string& point) { apply_moments(point); });
  if (!begin()) return finish();
  const auto began = scheduler().now();
  Duration faults_end{0};
  for (const auto& fault : scenario_.faults) {
    const auto waits = fault.when ? waits_for_moment : 0s;
    faults_end = std::max(faults_end, fault.at + waits + fault.lasts.value_or(0s));
    if (fault.when && fault.at == 0s) continue;  // It was there from the beginning.
    scheduler().after(world_, fault.at,
                      [this, fault] { fault.when ? moments_.push_back(fault) : apply(fault); });
  }
  while (scheduler().now() < began + faults_end + 1ms && !is_done()) advance(100ms);
  second_phase();
  return finish();
}

void Playing::start(Place& place) {
  place.last_start = scheduler().now();
  if (&place == places_[0].get()) {
    place.head = &cluster_.start_head(place.machine);
    ++played_.heads;
  } else if (scenario_.has_daemons) {
    place.daemon = &cluster_.start_daemon(place.machine, head_machine());
  } else {
    place.node = &cluster_.start_node(place.machine, head_machine());
  }
  place.first().on_end([this, &place](const Ending& ending) {
    if (!ending.last_words.empty())
      scheduler().note(place.machine.name, "ended: " + ending.last_words);
    if (place.head)
      for (auto& run : runs_) run.monitor.head_ended();
    scheduler().after(world_, pause_after(place, ending), [this, &place] {
      if (place.is_kept && place.has_power && !place.first().is_alive()) start(place);
    });
  });
}

/// Returns how long a program stays away. A head is kept running as `--supervised` does it.
Playing::Duration Playing::pause_after(Place& place, const Ending& ending) {
  if (!place.head) return scheduler().draw_time(20ms, scheduler().draw(4) == 0 ? 3s : 200ms);
  const auto lived = scheduler().now() - place.last_start;
  const bool is_supervised = ending.how != Ending::How::ended || lived >= least_life;
  if (!is_supervised || lived >= apps::KeepOptions().while_lived) place.pauses.reset();
  return is_supervised ? place.pauses.next() : restarted_by_systemd_after;
}

/// Starts the run. Faults come later.
bool Playing::begin() {
  const auto are_here = [this] {
    return places_[0]->head->is_ready &&
           std::all_of(places_.begin() + 1, places_.end(), [](const auto& place) {
             return place->newest_node() && place->newest_node()->has_said("joined");
           });
  };
  if (!cluster_.run_until(are_here)) {
    violate(8, "the nodes do not come");
    return false;
  }
  for (auto& run : runs_) {
    const auto submitted = cluster_.ask(head_machine(), "run.submit", config_of(run, scenario_));
    if (!submitted) violate(8, "the run is refused: " + submitted.error().text);
    look();
    if (!submitted) return false;
  }
  return true;
}

/// Lets the monitors see what happens on the cluster. Runs with equal recipes have equal states
/// after a step, so their states are compared with each other as well.
void Playing::watch() {
  cluster_.wires().watch(
      [this](const Wires::Party& from, const Wires::Party& to, const Parts& parts) {
        // States after a spike may be on their way when it is found. They never count.
        if (const auto wrong = states_.look(parts); wrong && !scenario_.has_spikes())
          violate(2, *wrong);
        for (auto& run : runs_) run.monitor.see_packet(from, to, parts);
      });
  cluster_.watch_said(
      [this](const std::string& who, const std::string& line) { check_saying(who, line); });
  head_machine().disk.watch([this](const SimulatedDisk::Call& call) {
    for (auto& run : runs_) run.monitor.see_call(call);
  });
}

/// Rule 3: no program sends a message that another one does not take.
void Playing::check_saying(const std::string& who, const std::string& line) {
  for (const auto* complaint : {"must not send", "dropped a message", "refused a message"})
    if (line.find(complaint) != line.npos) violate(3, who + " says: " + line);
}

void Playing::look() {
  for (; heads_seen_ < played_.heads; ++heads_seen_) {
    if (!places_[0]->head->is_ready) break;
    if (heads_seen_ + 1 < played_.heads) continue;
    for (auto& run : runs_) run.monitor.head_began(*places_[0]->head);
  }
  for (auto& run : runs_) run.monitor.look();
}

/// Rule 6: few tasks wait, whatever was stuck or frozen.
void Playing::check_queues() {
  scheduler().look_at_queues([this](ProcessId process, const std::string& name, std::size_t most) {
    if (process == Scheduler::world) return;
    auto& longest = played_.queues[name.substr(0, name.find_first_of("0123456789"))];
    longest = std::max(longest, most);
    if (most > most_waiting)
      violate(6, std::to_string(most) + " tasks have waited in the queue '" + name + "' of " +
                     scheduler().name(process));
  });
}

Played Playing::finish() {
  check_queues();
  for (const auto& run : runs_) {
    const auto& violations = run.monitor.violations();
    played_.violations.insert(played_.violations.end(), violations.begin(), violations.end());
    played_.recoveries += run.monitor.recoveries();
  }
  played_.history = scheduler().history();
  played_.hash = scheduler().trace_hash();
  played_.events = scheduler().events();
  played_.points = scheduler().points();
  played_.time = scheduler().now() - Scheduler::start;
  played_.states = states_.seen();
  return std::move(played_);
}

Played play(const Scenario& scenario, const TrainedSteps& expected, Scheduler::History history) {
  return Playing(scenario, expected, history).play();
}

Scenario shrink(Scenario scenario, const TrainedSteps& expected) {
  for (std::size_t i = 0; i < scenario.faults.size();) {
    auto fewer = scenario;
    fewer.faults.erase(fewer.faults.begin() + static_cast<std::ptrdiff_t>(i));
    if (play(fewer, expected).violations.empty())
      ++i;
    else
      scenario = std::move(fewer);
  }
  return scenario;
}

}  // namespace troupe::simulation
