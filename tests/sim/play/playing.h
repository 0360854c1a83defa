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

#include "apps/client/reply.h"
#include "apps/machine/kept_process.h"
#include "tests/sim/cluster.h"
#include "tests/sim/monitor.h"
#include "tests/sim/play.h"
#include "tests/sim/state_watch.h"
#include "transport/control/backoff.h"

namespace troupe::simulation {

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

  Played play();

 private:
  using Duration = Scheduler::Duration;
  using Kind = Fault::Kind;

  /// A machine with the program that it keeps running.
  struct Place {
    Place(SimulatedMachine& its, std::uint64_t seed)
        : machine(its), pauses(apps::KeepOptions().backoff, seed) {}

    SimulatedMachine& machine;
    transport::Backoff pauses;     // Between the lives of a supervised head.
    Scheduler::Time last_start{};  // When its program started last.
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

  /// A run and what is known of it.
  struct Led {
    Monitor monitor;
    int again = 0;             // How often it was resumed.
    std::string refusal = {};  // Why it could not be resumed.
  };

  // The scenario from its beginning to its end: play.cpp.

  static Scheduler::Options options(const Scenario& scenario, Scheduler::History history) {
    auto options = scenario.options();
    options.history = history;
    options.most_events = 500'000;
    return options;
  }
  Scheduler& scheduler() { return cluster_.scheduler(); }
  SimulatedMachine& head_machine() { return places_[0]->machine; }
  Place& place_of(int machine) { return *places_.at(static_cast<std::size_t>(machine)); }
  void start(Place& place);
  Duration pause_after(Place& place, const Ending& ending);
  bool begin();
  static Value config_of(const Led& run, const Scenario& scenario) {
    auto config = scenario.config();
    config.set("name", run.monitor.run());
    return config;
  }
  /// Adds the violation of a rule by no run in particular.
  void violate(int rule, const std::string& what) { runs_[0].monitor.violate(rule, what); }
  void watch();
  void check_saying(const std::string& who, const std::string& line);
  bool is_done() const {
    return std::ranges::all_of(runs_, [](const Led& run) { return run.monitor.state() == "done"; });
  }
  void advance(Duration time) {
    if (scheduler().run_until([] { return false; }, scheduler().now() + time) ==
        Scheduler::Stopped::too_many_events)
      is_too_long_ = true;
    look();
  }
  void look();
  bool is_drawn(Kind kind) const {
    return std::ranges::any_of(scenario_.faults,
                               [kind](const Fault& fault) { return fault.kind == kind; });
  }
  bool has_bad_disk() const {
    return is_drawn(Kind::full_disk) || is_drawn(Kind::failing_call) || is_drawn(Kind::slow_disk) ||
           is_drawn(Kind::damage);
  }
  void check_queues();
  Played finish();

  // Faults: play/faults.cpp.

  void later(const Fault& fault, Scheduler::Task task);
  void apply_moments(const std::string& point);
  void apply(const Fault& fault);
  void watch_second(HeadLife& second, const HeadLife& first);
  static void damage(Place& place, Monitor& monitor);
  void kill_again(Place& place, const Fault& fault, Scheduler::Time until);
  void crash(Place& place, const Fault& fault,
             const std::optional<storage::Survival>& survival = {});
  void notice_silence(Place& place);
  void end_at_call(Place& place, const Fault& fault);
  void tear_decision(Place& place);
  void kill_at_point(SimulatedProcess& process, std::uint64_t points);
  void repeat(const Fault& fault);

  // People, and the second phase: play/people.cpp.

  void act(const Fault& fault);
  void check_answer(const apps::Reply& reply);
  void uncordon_healthy();
  void second_phase();
  bool is_done_until(Led& run, Scheduler::Time until);
  void check_rest();
  std::string what_is_left();
  void resume(const Led& run, std::function<void(const apps::Reply&)> then);
  void check_end(Led& run, const std::string& state, const std::string& why);

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

}  // namespace troupe::simulation
