#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "actors/decide/plan_switch.h"
#include "actors/decide/run_machine.h"
#include "core/value.h"
#include "simulation/trace.h"

namespace troupe::simulation {

/// A plan for hosts, identified by their numbers.
struct HostPlan {
  std::vector<int> hosts;  // The hosts with a part; empty: no plan fits.
  double rate = 0;         // Steps per second.
  Duration store{};        // Time to move the whole state between the head's link and the disk.
  Duration fetch{};        // Time to move a host's part between its memory and another host's.
  Duration copy{};         // Time to copy what a host keeps of one step within its memory.
  std::string text;        // Plans with equal text have equal times.
};

struct ForecastOptions {
  std::vector<std::string> hosts;
  /// Uses the first ones of hosts that are alike.
  std::function<HostPlan(const std::vector<int>& hosts)> plan;
  FailureTrace trace;  // Node names map to hosts in order of first appearance.
  Duration length{};
  Duration notice{};  // Warning time before a host goes; 0: none.
  actors::decide::Limits limits;
  actors::decide::SwitchLimits switches;
  std::int64_t steps = 1;       // The run ends after this many steps.
  std::int64_t save_every = 1;  // Steps between two saves.
  int copies = 1;  // Copies of each part of the state in the hosts' memory; 1: on disk only.
};

/// A recovery, from the loss of a host until the run has repeated all lost steps.
struct Recovery {
  Duration at{};
  int lost = 0;              // Hosts lost, including those lost during the recovery.
  bool from_memory = false;  // Whether its last attempt began with a state from memory.
  std::string why;
  Duration detect{}, freeze{}, plan{}, prepare{}, load{}, again{};
  std::int64_t steps_again = 0;

  Duration total() const { return detect + freeze + plan + prepare + load + again; }
};

struct PlanInForce {
  Duration at{};
  int nodes = 0;
  double rate = 0;
  std::string text;
};

struct ForecastReport {
  Duration length{};
  std::int64_t steps = 0;        // Distinct steps done.
  std::int64_t steps_again = 0;  // Steps that were repeated.
  int losses = 0;
  int arrivals = 0;
  double mean_nodes = 0;
  /// The shares of the time. `useful`: steps that count, at the pace of their plan. `again`:
  /// repeated steps. `starting`: before the first plan. `waiting`: too few nodes. `recovering`:
  /// from the detection of a loss until the next plan. `rest`: lost partial steps, undetected
  /// losses, holds for saves and switches.
  double useful = 0, again = 0, starting = 0, waiting = 0, recovering = 0, rest = 0;  // Seconds.
  std::vector<Recovery> recoveries;
  std::vector<PlanInForce> plans;
  std::vector<Value> timeline;  // Events in order of time.
  std::string end;              // Why the run ended before the time was over; empty: it did not.

  /// Returns the ratio of `useful` to the whole time.
  double goodput() const;
};

/// Forecasts hours of a run within seconds, on hosts that come and go as in a trace. A head's own
/// machine decides; its orders take the time that plans and options say.
ForecastReport forecast(const ForecastOptions& options);

/// Returns the silence after which a node with regular heartbeats counts as dead.
Duration silence_until_dead(int nodes);

}  // namespace troupe::simulation
