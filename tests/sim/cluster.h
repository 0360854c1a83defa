#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/client/reply.h"
#include "apps/head/head_service.h"
#include "apps/node/node_daemon.h"
#include "apps/node/node_program.h"
#include "core/value.h"
#include "simulation/machine/scheduler.h"
#include "simulation/machine/wires.h"
#include "tests/sim/process.h"

namespace troupe::simulation {

/// A life of a program: its process and its output.
struct Life {
  std::unique_ptr<SimulatedProcess> process;
  std::vector<std::string> said;  // The lines that it has printed.
  bool is_ready = false;          // Whether it has opened.

  bool has_said(const std::string& text) const;
};

struct HeadLife : Life {
  std::string endpoint;
  std::uint64_t term = 0;
  apps::HeadService* service = nullptr;  // Null before it has opened and after its end.
};

struct NodeLife : Life {
  apps::NodeProgram* program = nullptr;  // Null before it has started and after its end.
};

struct DaemonLife : Life {
  NodeLife* node = nullptr;  // The newest node process; null before the first.
};

/// Asks a head, as a client on a simulated machine does.
class Person;

/// Simulated machines, and the programs of Troupe on them. All names, keys and ports are fixed, so
/// that equal seeds give equal runs.
class SimulatedCluster {
 public:
  explicit SimulatedCluster(const Scheduler::Options& options);
  ~SimulatedCluster();
  SimulatedCluster(const SimulatedCluster&) = delete;
  SimulatedCluster& operator=(const SimulatedCluster&) = delete;

  Scheduler& scheduler() { return scheduler_; }
  Wires& wires() { return wires_; }
  SimulatedMachine& add_machine(const std::string& name);

  /// Adds the machine of the people who ask the head. They have one without this too.
  void add_desk();

  /// Starts a head, whose state is on the disk of its machine. A machine has one head at a time.
  HeadLife& start_head(SimulatedMachine& machine);
  /// Starts a node that dials the head of a machine. It has the name of its own machine.
  NodeLife& start_node(SimulatedMachine& machine, const SimulatedMachine& head);
  /// Starts a daemon, which keeps a node running.
  DaemonLife& start_daemon(SimulatedMachine& machine, const SimulatedMachine& head);
  /// Asks a life to end in order, as a signal does.
  void end(HeadLife& head);
  void end(NodeLife& node);

  /// Calls a function with each line that a program prints, instead of the one before.
  void watch_said(std::function<void(const std::string& who, const std::string& line)> said) {
    said_ = std::move(said);
  }

  /// Asks the head of a machine as soon as it can be reached, and returns at once. Calls `then`
  /// with the answer, if one comes.
  void request(const SimulatedMachine& head, const std::string& type, Value body,
               std::function<void(const apps::Reply&)> then = {});
  /// Asks the head of a machine and returns its answer. Fails after a minute of simulated time.
  apps::Reply ask(const SimulatedMachine& head, const std::string& type, Value body = Value::Map{});
  /// Runs until a condition holds. Returns false if it does not within `patience`.
  bool run_until(const std::function<bool()>& condition,
                 std::chrono::nanoseconds patience = std::chrono::minutes(1));

  /// Returns the report of the head on a run (RunStanding), or nothing if it knows none.
  Value run(const SimulatedMachine& head, const std::string& name);

 private:
  class NodeProcesses;
  struct NodeOrder {
    std::int64_t life = 0;
    std::uint64_t term = 0;
    std::string term_proof;
  };
  NodeLife& start_node(SimulatedMachine& machine, const SimulatedMachine& head,
                       const NodeOrder& order);
  Person& person_of(const SimulatedMachine& head);
  void say(Life& life, const std::string& text);

  Scheduler scheduler_;
  Wires wires_;
  std::vector<std::unique_ptr<SimulatedMachine>> machines_;
  SimulatedMachine* desk_ = nullptr;
  std::vector<std::unique_ptr<Person>> people_;
  std::vector<std::unique_ptr<HeadLife>> heads_;
  std::vector<std::unique_ptr<NodeLife>> nodes_;
  std::vector<std::unique_ptr<DaemonLife>> daemons_;
  std::function<void(const std::string& who, const std::string& line)> said_;
};

}  // namespace troupe::simulation
