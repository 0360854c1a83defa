#pragma once

#include <caf/all.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/caf_shim.h"
#include "actors/nodes/may.h"
#include "actors/nodes/mesh.h"
#include "actors/nodes/placement.h"
#include "actors/nodes/proxy.h"
#include "actors/nodes/run_orders.h"
#include "actors/play/state_store.h"
#include "actors/run_spec.h"
#include "core/env.h"
#include "transport/network.h"

namespace troupe::actors {

/// A run in one process: the opened resources of its configuration, and the executors of its local
/// devices.
class RunHome {
 public:
  virtual ~RunHome() = default;
  virtual RunSpecPtr spec() = 0;
  /// Returns the linked devices, by the run's device (null: no links), or an empty list.
  virtual std::vector<LinkedDevice*> linked() { return {}; }
  /// Returns how long the run waits for a lost head.
  virtual std::chrono::nanoseconds head_patience() const = 0;
};

struct NodeAttemptOrder {
  std::shared_ptr<RunHome> home;
  Prepare prepare;
  std::shared_ptr<StateStore> state_store;  // The process's states of the run; null: none.
  int attempt = 0;
  transport::Epoch epoch;
  std::string interface = "127.0.0.1";
  Carriers carriers = Carriers::shm_and_tcp;
  transport::EdgePatience edges = {};
  std::optional<transport::KeyPair> keys = {};  // This process's keys.
  /// Called when a device has failed or does not let go of memory. It must end the process and not
  /// return.
  std::function<void(const std::string& why)> stuck;
  /// Sends a message to the head at once, from any thread.
  std::function<Status(const transport::Message&)> tell_head;
};

/// Another process of the attempt that cannot be reached any more.
struct LostProcess {
  int process = 0;  // The number in the placement.
  std::string why;
};

/// A node attempt: a node's part in one attempt, with its players, proxies of all others, and the
/// channels between them. One thread uses it. Functions block only where they say so.
class NodeAttempt {
 public:
  /// The network outlives the attempt.
  static Result<std::unique_ptr<NodeAttempt>> open(transport::Network& network,
                                                   NodeAttemptOrder order);
  /// Waits until all players have ended and devices have let go of transfers.
  ~NodeAttempt();

  MeshAddress address() const { return mesh_->address(); }

  /// Connects to the other processes, and returns before that is done. Then waits for the state,
  /// starts the players and calls `then`, all in one task of the loop. An attempt that is destroyed
  /// before calls nothing.
  void start(const Start& start, Loop& loop, std::function<void(const Status&)> then);
  /// Returns the first process of the attempt that was lost.
  std::optional<LostProcess> lost() const;

  /// Passes a message of the head to a player, or keeps it until the players have started.
  Status deliver(transport::Message message);

 private:
  class State;
  explicit NodeAttempt(NodeAttemptOrder order);

  bool is_here(PlayerId player) const;
  LinkedDevices linked() const;
  Route route();
  Status deliver(int from, PlayerId to, WireMessage wire_message);
  void arrived(int from, PlayerId to, WireMessage wire_message);
  Status check_start(const Start& start) const;
  Status play(const Start& start);
  Status give_states(const Start& start);
  Result<StartPoint> state_of(PlayerId optimizer, int from, std::int64_t step,
                              std::chrono::steady_clock::time_point end);
  Status check_state(const Snapshot& state, PlayerId optimizer, int from, std::int64_t step) const;
  std::string name_of(int process) const;

  NodeAttemptOrder order_;
  RunSpecPtr spec_;
  const RunBounds bounds_;
  std::unique_ptr<MemoryPool> memory_;  // For received data; outlives all members below.
  std::unique_ptr<State> state_;        // Shared with other threads.
  std::unique_ptr<Mesh> mesh_;
  caf_shim::Config config_;  // Must outlive the system.
  std::unique_ptr<caf::actor_system> system_;
};

/// Returns the bound for what is in flight between two processes of a run.
transport::Bound bound_of(const RunSpec& spec);

}  // namespace troupe::actors
