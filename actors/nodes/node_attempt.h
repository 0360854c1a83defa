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
  /// Calls `then`, on any thread, once the executors have finished their jobs. No job may be posted
  /// any more.
  virtual void finish(std::function<void()> then) = 0;
};

struct NodeAttemptOrder {
  /// Opens the run's configuration. It may take long, so it runs aside.
  std::function<Result<std::shared_ptr<RunHome>>()> open_home;
  /// Called on the loop when that is done. Returns the process's states of the run; null: none.
  std::function<std::shared_ptr<StateStore>(RunHome&)> find_store;
  Prepare prepare;
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

/// A node attempt: a node's part in one attempt, with its players, proxies of all others, and the
/// channels between them. Its loop calls its functions, and none of them waits. It tells the head
/// by itself that it has prepared or failed.
class NodeAttempt {
 public:
  enum class Phase : std::uint8_t {
    preparing,   // Opens its configuration and its doors.
    prepared,    // Waits for the head's order to start.
    connecting,  // Forms channels and edges.
    loading,     // Waits for states from other processes.
    playing,
    failed,  // Waits for its end.
    ending,  // Waits until its actors, jobs and transfers are gone.
    ended,
  };

  struct Context {
    Env& env;
    Loop& loop;
    transport::Network& network;
    caf_shim::System& system;
  };

  /// Prepares. Calls `then` with the outcome on the loop, unless the attempt is ended before. The
  /// environment and the loop outlive the attempt. The system and the network outlive its actors.
  NodeAttempt(Context context, NodeAttemptOrder order, std::function<void(Status)> then);
  /// Drops the attempt if it has not ended: kills its actors, which keep what they use as long as
  /// they need it. The loop must have ended then.
  ~NodeAttempt();
  NodeAttempt(const NodeAttempt&) = delete;
  NodeAttempt& operator=(const NodeAttempt&) = delete;

  Phase phase() const;

  /// Connects to the other processes, takes over states, and starts the players.
  void start(const Start& start);
  /// Passes a message of the head to a player. It waits for a player that is about to start.
  Status deliver(transport::Message message);
  /// Ends the attempt in any phase. Calls `then` on the loop once players have ended, devices have
  /// let go of transfers, and all memory is free.
  void end(std::function<void()> then);

 private:
  class Work;
  std::shared_ptr<Work> work_;
};

/// Returns the bound for what is in flight between two processes of a run.
transport::Bound bound_of(const RunSpec& spec);

}  // namespace troupe::actors
