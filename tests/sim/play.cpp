#include "tests/sim/play.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "apps/machine/kept_process.h"
#include "tests/sim/cluster.h"
#include "tests/sim/monitor.h"
#include "tests/sim/state_watch.h"
#include "transport/control/backoff.h"

namespace troupe::simulation {
namespace {

using namespace std::chrono_literals;
using Duration = Scheduler::Duration;
using Kind = Fault::Kind;

constexpr auto decisions = "runs/tiny/decisions";
/// A supervised head that fails before it has lived for so long is not started again
/// (apps/commands/head.cpp). Then systemd starts its supervisor again (package/systemd).
constexpr auto least_life = 2s;
constexpr auto restarted_by_systemd_after = 1s;
/// How long a person waits before the run is submitted again. A disk may be full for a minute.
constexpr auto refused_for = 2s;
/// How long a fault waits for the decision at which it comes.
constexpr auto waits_for_moment = 4s;
/// The most tasks that may wait in a queue of a process.
constexpr std::size_t most_waiting = 600;

/// A scenario while it is played.
class Playing {
 public:
  Playing(const Scenario& scenario, const TrainedSteps& expected, Scheduler::History history)
      : scenario_(scenario),
        cluster_(options(scenario, history)),
        world_(scheduler().add_queue(Scheduler::world, "faults")) {
    for (int i = 0; i <= scenario.nodes; ++i) {
      auto& machine = cluster_.add_machine(i == 0 ? "head-host" : "node-" + std::to_string(i));
      machine.times.most = scenario.slowest_job;
      if (!scenario.data.empty())
        write_data(machine.disk.files(), scenario.data[static_cast<std::size_t>(i)]);
      places_.push_back(std::make_unique<Place>(machine, scenario.seed));
    }
    cluster_.add_desk();
    for (const auto* run : {"tiny", "other"})
      if (runs_.empty() || scenario.has_two_runs)
        runs_.push_back({Monitor(cluster_, head_machine(), run, expected)});
    watch();
  }

  ~Playing() {
    for (const auto& place : places_)
      if (place->head || place->node || place->daemon) place->first().on_end({});
  }
  Playing(const Playing&) = delete;
  Playing& operator=(const Playing&) = delete;

  Played play() {
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

 private:
  /// A machine with the program that it keeps running.
  struct Place {
    Place(SimulatedMachine& its, std::uint64_t seed)
        : machine(its), pauses(apps::KeepOptions().backoff, seed) {}

    SimulatedMachine& machine;
    transport::Backoff pauses;     // Between the lives of a supervised head.
    Scheduler::Time last_start{};  // Of its program.
    HeadLife* head = nullptr;
    NodeLife* node = nullptr;  // Without a daemon.
    DaemonLife* daemon = nullptr;
    bool has_power = true;
    int crashes = 0;
    bool is_kept = true;  // Whether its program starts again.

    /// Returns the process that is started from outside.
    SimulatedProcess& first() const {
      if (head) return *head->process;
      return daemon ? *daemon->process : *node->process;
    }
    const NodeLife* newest_node() const { return daemon ? daemon->node : node; }
    /// Returns the head or the node; with a daemon, sometimes the daemon.
    SimulatedProcess& process(std::uint64_t number) const {
      return daemon && daemon->node && number % 4 > 0 ? *daemon->node->process : first();
    }
  };

  static Scheduler::Options options(const Scenario& scenario, Scheduler::History history) {
    auto options = scenario.options();
    options.history = history;
    options.most_events = 500'000;
    return options;
  }
  Scheduler& scheduler() { return cluster_.scheduler(); }
  SimulatedMachine& head_machine() { return places_[0]->machine; }
  Place& place_of(int machine) { return *places_.at(static_cast<std::size_t>(machine)); }

  void start(Place& place) {
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
  Duration pause_after(Place& place, const Ending& ending) {
    if (!place.head) return scheduler().draw_time(20ms, scheduler().draw(4) == 0 ? 3s : 200ms);
    const auto lived = scheduler().now() - place.last_start;
    const bool is_supervised = ending.how != Ending::How::ended || lived >= least_life;
    if (!is_supervised || lived >= apps::KeepOptions().while_lived) place.pauses.reset();
    return is_supervised ? place.pauses.next() : restarted_by_systemd_after;
  }

  /// Starts the run. Faults come later.
  bool begin() {
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

  /// A run and what is known of it.
  struct Led {
    Monitor monitor;
    int again = 0;             // How often it was resumed.
    std::string refusal = {};  // Why it could not be resumed.
  };
  static Value config_of(const Led& run, const Scenario& scenario) {
    auto config = scenario.config();
    config.set("name", run.monitor.run());
    return config;
  }
  /// Adds the violation of a rule by no run in particular.
  void violate(int rule, const std::string& what) { runs_[0].monitor.violate(rule, what); }

  /// Lets the monitors see what happens on the cluster. Runs with equal recipes have equal states
  /// after a step, so their states are compared with each other as well.
  void watch() {
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
  void check_saying(const std::string& who, const std::string& line) {
    for (const auto* complaint : {"must not send", "dropped a message", "refused a message"})
      if (line.find(complaint) != line.npos) violate(3, who + " says: " + line);
  }

  bool is_done() const {
    return std::ranges::all_of(runs_, [](const Led& run) { return run.monitor.state() == "done"; });
  }
  void advance(Duration time) {
    if (scheduler().run_until([] { return false; }, scheduler().now() + time) ==
        Scheduler::Stopped::too_many_events)
      is_too_long_ = true;
    look();
  }
  void look() {
    for (; heads_seen_ < played_.heads; ++heads_seen_) {
      if (!places_[0]->head->is_ready) break;
      if (heads_seen_ + 1 < played_.heads) continue;
      for (auto& run : runs_) run.monitor.head_began(*places_[0]->head);
    }
    for (auto& run : runs_) run.monitor.look();
  }

  /// Ends a fault.
  void later(const Fault& fault, Scheduler::Task task) {
    if (fault.lasts) scheduler().after(world_, *fault.lasts, std::move(task));
  }

  /// Applies the faults that come when a head decides by a row.
  void apply_moments(const std::string& point) {
    for (auto& fault : moments_)
      if (fault.times > 0 && point == actors::decide::to_string(*fault.when)) {
        --fault.times;
        // The head's own task goes on to its end.
        scheduler().after(world_, fault.later, [this, fault] { apply(fault); });
      }
    std::erase_if(moments_, [](const Fault& fault) { return fault.times == 0; });
  }

  void apply(const Fault& fault) {
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
  void watch_second(HeadLife& second, const HeadLife& first) {
    if (!second.process->is_alive()) return;
    if (second.is_ready) {
      if (first.process->is_alive()) violate(1, "two heads lead from one folder");
      return second.process->kill();
    }
    scheduler().after(world_, 1ms, [this, &second, &first] { watch_second(second, first); });
  }

  static void damage(Place& place, Monitor& monitor) {
    if (place.machine.disk.flip_bit("runs/" + monitor.run() + "/checkpoints")) monitor.is_damaged();
  }

  void kill_again(Place& place, const Fault& fault, Scheduler::Time until) {
    if (scheduler().now() >= until || is_done()) return;
    if (place.process(fault.number).is_alive()) place.process(fault.number).kill();
    scheduler().after(world_, 5ms + Duration(fault.number * 500),
                      [this, &place, fault, until] { kill_again(place, fault, until); });
  }

  void crash(Place& place, const Fault& fault,
             const std::optional<storage::Survival>& survival = {}) {
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
  void notice_silence(Place& place) {
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
  void end_at_call(Place& place, const Fault& fault) {
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
  void tear_decision(Place& place) {
    place.machine.disk.on_call([this, &place](const SimulatedDisk::Call& call) {
      if (std::string_view(call.what) != "sync" || call.path != decisions) return;
      place.machine.disk.on_call({});
      scheduler().kill(call.process);
      Fault fault;
      fault.lasts = 50ms;
      scheduler().after(world_, 0ns, [this, &place, fault] {
        crash(
            place, fault,
            storage::Survival{storage::Survival::Entries::kept, storage::Survival::Contents::torn});
      });
    });
  }

  /// Kills a process at one of the next points that its code names.
  void kill_at_point(SimulatedProcess& process, std::uint64_t points) {
    if (!process.is_alive()) return;
    const auto left = std::make_shared<std::uint64_t>(points);
    process.env().on_point([this, left, id = process.id()](const std::string& name) {
      if ((*left)-- > 0) return;
      scheduler().trace("fault", "at " + name);
      scheduler().kill(id);
    });
  }

  void repeat(const Fault& fault) {
    const auto all = cluster_.wires().connections();
    if (all.empty()) return;
    cluster_.wires().repeat(all[fault.number % all.size()].number,
                            fault.number % 2 == 0 ? Side::dialing : Side::listening);
  }

  /// A person acts.
  void act(const Fault& fault) {
    Value about_node = Value::Map{};
    about_node.set("node", place_of(fault.machine).machine.name);
    Value about_run = Value::Map{};
    about_run.set("run", runs_[fault.number % runs_.size()].monitor.run());
    const auto ask = [this](const char* type, Value body) {
      cluster_.request(head_machine(), type, std::move(body),
                       [this](const apps::Reply& reply) { check_answer(reply); });
    };
    switch (fault.kind) {
      case Kind::drain:
        ask("node.drain", about_node);
        break;
      case Kind::cordon:
        ask("node.cordon", about_node);
        later(fault, [ask, about_node] { ask("node.uncordon", about_node); });
        break;
      case Kind::pause:
        ask("run.pause", about_run);
        later(fault, [ask, about_run] { ask("run.resume", about_run); });
        break;
      case Kind::stop:
        about_run.set("mode", fault.number % 2 == 0 ? "drain" : "now");
        ask("run.stop", about_run);
        break;
      case Kind::save:
        ask("run.checkpoint", about_run);
        break;
      case Kind::submit:
        resume(runs_[fault.number % runs_.size()], [](const apps::Reply&) {});
        break;
      default:
        break;
    }
  }

  /// Rule 9: an order of a person does not fail for want of a save, unless a disk is bad.
  void check_answer(const apps::Reply& reply) {
    if (reply || has_bad_disk()) return;
    if (const auto& why = reply.error().text; why.find(" was not saved") != why.npos)
      violate(9, "an order of a person was refused without a drawn reason: " + why);
  }

  void uncordon_healthy() {
    for (std::size_t i = 1; i < places_.size(); ++i) {
      if (!scenario_.stays_healthy[i]) continue;
      Value body = Value::Map{};
      body.set("node", places_[i]->machine.name);
      cluster_.request(head_machine(), "node.uncordon", std::move(body));
    }
  }

  /// Enough machines are healthy, and a person wants the run to end.
  void second_phase() {
    moments_.clear();
    scheduler().note("fault", "the second phase begins");
    bool are_done = true;
    for (auto& run : runs_) are_done &= is_done_until(run, scheduler().now() + 5min);
    if (is_too_long_) return violate(8, "too many events");
    if (are_done) check_rest();
  }

  /// Lets a run come to its end. Returns whether it is done.
  bool is_done_until(Led& run, Scheduler::Time until) {
    Value standing;
    auto next_try = scheduler().now();
    for (int looks = 0; scheduler().now() < until && !is_too_long_; ++looks) {
      // A drain may have been ordered only now.
      if (looks % 20 == 0) uncordon_healthy();
      standing = cluster_.run(head_machine(), run.monitor.run());
      look();
      const auto state = text_in(standing, "state");
      if (state == "done") break;
      Value body = Value::Map{};
      body.set("run", run.monitor.run());
      if (state == "paused") (void)cluster_.ask(head_machine(), "run.resume", std::move(body));
      if ((state == "stopped" || state == "failed") && scheduler().now() >= next_try) {
        check_end(run, state, text_in(standing, "why"));
        next_try = scheduler().now() + refused_for;
        // Nodes that have the data may come back only now.
        if (++run.again > (scenario_.lacks_data() ? 12 : 3)) break;
        resume(run, [this, &run](const apps::Reply& reply) {
          if (reply) return;
          --run.again;  // The disk may be full for a while.
          scheduler().note("person", "refused: " + reply.error().text);
          run.refusal = reply.error().text;
        });
      }
      advance(200ms);
    }
    if (is_too_long_) return false;
    const bool is_done = text_in(standing, "state") == "done";
    if (!is_done && !run.refusal.empty())
      standing.set("why", "a person cannot resume it: " + run.refusal);
    run.monitor.ended(standing, scenario_.steps);
    return is_done;
  }

  /// Rule 7: soon nothing of the run is left on nodes that can hear the head.
  void check_rest() {
    std::string left;
    for (const auto until = scheduler().now() + 20s; scheduler().now() < until; advance(100ms))
      if (left = what_is_left(); left.empty()) return;
    violate(7, "the run is done, but " + left);
  }

  std::string what_is_left() {
    for (const auto& place : places_) {
      const auto* node = place->newest_node();
      if (!node || !place->has_power || !node->process->is_alive()) continue;
      const auto process = node->process->id();
      const auto here = place->machine.id, head = head_machine().id;
      const auto& wires = cluster_.wires();
      if (scheduler().is_frozen(process) || wires.is_cut(here, head) || wires.is_cut(head, here))
        continue;
      if (wires.places(process) > 0) return place->machine.name + " still waits for other nodes";
    }
    return {};
  }

  /// Submits the run again. A head begins an ended run anew without `resume`.
  void resume(const Led& run, std::function<void(const apps::Reply&)> then) {
    auto scenario = scenario_;
    scenario.is_impatient = false;
    auto config = config_of(run, scenario);
    config.set("resume", true);
    cluster_.request(head_machine(), "run.submit", std::move(config), std::move(then));
  }

  bool is_drawn(Kind kind) const {
    return std::ranges::any_of(scenario_.faults,
                               [kind](const Fault& fault) { return fault.kind == kind; });
  }

  bool has_bad_disk() const {
    return is_drawn(Kind::full_disk) || is_drawn(Kind::failing_call) || is_drawn(Kind::slow_disk) ||
           is_drawn(Kind::damage);
  }

  /// Rule 9.
  void check_end(Led& run, const std::string& state, const std::string& why) {
    if (state == "stopped" && !is_drawn(Kind::stop))
      run.monitor.violate(9, "the run is stopped, which nobody asked for: " + why);
    // A person must look at a run that fails in the same way on two nodes or again and again.
    const bool may_fail = has_bad_disk() || scenario_.lacks_data() || scenario_.is_impatient ||
                          is_drawn(Kind::failing_jobs) || is_drawn(Kind::kill_again) ||
                          is_drawn(Kind::program_fault);
    if (state == "failed" && !may_fail)
      run.monitor.violate(9, "the run has failed without a drawn reason: " + why);
  }

  /// Rule 6: few tasks wait, whatever was stuck or frozen.
  void check_queues() {
    scheduler().look_at_queues(
        [this](ProcessId process, const std::string& name, std::size_t most) {
          if (process == Scheduler::world) return;
          auto& longest = played_.queues[name.substr(0, name.find_first_of("0123456789"))];
          longest = std::max(longest, most);
          if (most > most_waiting)
            violate(6, std::to_string(most) + " tasks have waited in the queue '" + name + "' of " +
                           scheduler().name(process));
        });
  }

  Played finish() {
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

  const Scenario& scenario_;
  Played played_;
  SimulatedCluster cluster_;
  const QueueId world_;
  std::vector<std::unique_ptr<Place>> places_;
  std::deque<Led> runs_;  // At least one.
  StateWatch states_;
  std::vector<Fault> moments_;  // They come when a head decides by a row.
  int heads_seen_ = 0;
  bool is_too_long_ = false;
  int places_broken_ = 0;
};

}  // namespace

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
