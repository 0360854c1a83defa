#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "actors/caf_shim.h"
#include "actors/executor.h"
#include "actors/nodes/node_attempt.h"
#include "actors/nodes/node_pool.h"
#include "actors/nodes/remote_players.h"
#include "actors/play/linked_device.h"
#include "core/threads/real_env.h"
#include "little_run.h"
#include "sim_device/sim_world.h"
#include "transport/links/edges.h"
#include "transport/real_network.h"

namespace troupe::actors {

class LittleNode;

/// A device of a node, with its links.
struct LittleDevice {
  std::unique_ptr<Executor> executor;
  std::unique_ptr<LinkedDevice> linked;  // Destroyed first.
};

/// Returns a run whose devices may be linked, with eight micro-batches and a save after each step.
Piece linked_piece(const std::string& model, std::string_view schedule, int stages,
                   int replicas = 1, int chunks = 1);

/// Returns the bits of the whole model as one stage in a plain loop without failures.
Digest bits_of_plain_loop(Piece piece);

/// Whether warnings tell of a node that LittleCluster::kill() ended. The run hears of it from the
/// test and from the channels of others, in any order, and tells what it hears first.
bool tells_of_death(const std::string& warnings);

/// The options for playing a run on a cluster in this process.
struct ClusterOrder {
  int nodes = 2;
  /// A node whose devices have no links, and a node whose links are of another kind; -1: none.
  int without_links = -1;
  int of_another_kind = -1;
  /// A node whose devices do nothing in the first attempt.
  int born_frozen = -1;
  Carriers carriers = Carriers::shm_and_tcp;
  transport::EdgePatience patience = {};
  /// Replaces the threads that sim_device links, unless it is empty.
  std::function<LittleDevice()> make_device = {};
};

/// A run whose players are on nodes. All nodes are in this process, with the threads and channels
/// of separate processes. Their devices compute on threads, and sim_device links them.
class LittleCluster {
 public:
  LittleCluster(const Piece& piece, const ClusterOrder& order);
  ~LittleCluster();

  /// Plays to the end.
  Played play();

  // Functions for any thread while the run plays.

  /// Kills a node: its devices stop, and its channels end without a message.
  void kill(int node);
  /// Stops a node's devices without reporting that.
  void freeze_devices(int node);
  /// Blocks new jobs of the node's devices: they are neither done nor released.
  void block_devices(int node);
  /// Makes a node's devices fail; they do nothing more for this process.
  void break_devices(int node);
  /// Tells the head that the node's first stage has failed.
  void fail_player(int node);

  /// It says this about its attempt to the head.
  void say(int node, transport::Message message);

  sim_device::SimWorld& world() { return world_; }
  /// Returns the messages that the head got from nodes whose process had to end.
  std::string stuck() const;

 private:
  friend class LittleNode;
  Status send(std::uint64_t incarnation, const transport::Message& message);
  void heard(std::uint64_t incarnation, transport::Message message);
  void tell_stuck(const std::string& why);

  const Piece piece_;
  const ClusterOrder order_;
  sim_device::SimWorld world_;
  std::atomic<bool> stopping_{false};
  std::thread devices_;
  RealEnv env_;
  transport::RealNetwork network_;
  caf_shim::RealSystem system_;
  NodePool pool_;
  std::vector<std::unique_ptr<LittleNode>> nodes_;
  std::unique_ptr<RemotePlayerHost> player_host_;
  mutable std::mutex mutex_;
  std::string stuck_;
  std::atomic<std::size_t> bytes_left_{0};
};

}  // namespace troupe::actors
