#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/value.h"
#include "simulation/cluster.h"
#include "simulation/trace.h"

namespace troupe::simulation {

/// A plan for some hosts, by their numbers.
struct HostPlan {
  std::vector<int> hosts;  // Who has a part; empty: no plan fits.
  double rate = 0;         // Steps per second.
  Duration store{};        // All of the state through the head's link, to the disk or from it,
  Duration fetch{};        // a host's part of it through its own, to or from another's memory,
  Duration copy{};         // and what it keeps of one step, within its own.
  std::string text;        // Plans of one text have the same times.
};

struct ReplayOptions {
  std::vector<std::string> hosts;
  std::function<HostPlan(const std::vector<int>& hosts)> plan;
  FailureTrace trace;  // Its nodes are the hosts, in the order in which they first come.
  Duration length{};
  Duration notice{};  // That a host gives before it goes; 0: it is gone without a word.
  recon::Limits limits;
  std::int64_t save_every = 1;  // Steps.
  int copies = 1;  // Of each part of the state in the memory of hosts; 1: on disk only.
  std::uint64_t seed = 1;
};

/// From the moment at which a host was gone to that at which the run is where it was.
struct Recovery {
  Duration at{};
  int lost = 0;              // Hosts; those that went meanwhile are merged into it.
  bool from_memory = false;  // The last of its epochs began with what hosts had in memory.
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

struct ReplayReport {
  Duration length{};
  std::int64_t steps = 0;        // Done, each counted once.
  std::int64_t steps_again = 0;  // And done once more.
  int losses = 0;
  int arrivals = 0;
  double mean_nodes = 0;
  /// All of the time: steps that count, at the pace that their plan has where nothing fails; steps
  /// that were done again; until the first plan was in force; with too few nodes; from the moment
  /// a loss is known until the next plan is in force; and the rest: open steps that were lost,
  /// losses that were not noticed yet, holds for saves and switches.
  double useful = 0, again = 0, starting = 0, waiting = 0, recovering = 0, rest = 0;  // Seconds.
  std::vector<Recovery> recoveries;
  std::vector<PlanInForce> plans;
  std::vector<Value> timeline;  // What happened, in the order of time.
  std::string flaw;             // Of the simulation itself; empty: none.

  /// Useful-step ratio: of all the time.
  double goodput() const;
};

/// Hours of a run within seconds: the real control plane, and a cluster that comes and goes as a
/// trace says.
ReplayReport replay(const ReplayOptions& options);

/// For how long a node must be silent until it is given up, where its heartbeats were regular.
Duration silence_until_dead(int nodes);

}  // namespace troupe::simulation
