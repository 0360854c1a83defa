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

#include "actors/executor.h"
#include "actors/nodes/node_attempt.h"
#include "actors/nodes/node_pool.h"
#include "actors/nodes/remote_players.h"
#include "actors/play/linked_device.h"
#include "little_run.h"
#include "sim_device/sim_world.h"
#include "transport/channels/channel_thread.h"
#include "transport/links/edges.h"

namespace troupe::actors {

class LittleNode;

/// What a node computes on, with its links.
struct LittleDevice {
  std::unique_ptr<Executor> executor;
  std::unique_ptr<LinkedDevice> linked;  // Goes first.
};

/// A run whose devices may be linked: eight micro-batches, and a save after each step.
Piece linked_piece(const std::string& model, std::string_view schedule, int stages,
                   int replicas = 1, int chunks = 1);

/// What its whole model gives as one stage in a plain loop, in which nothing fails.
Digest bits_of_plain_loop(Piece piece);

/// How a run is to be played on a cluster in this process.
struct ClusterOrder {
  int nodes = 2;
  /// A node whose devices have no links, and one whose links are of another kind; -1: none.
  int without_links = -1;
  int of_another_kind = -1;
  /// And one whose devices do nothing in the first attempt.
  int born_frozen = -1;
  Carriers carriers = Carriers::shm_and_tcp;
  transport::EdgePatience patience = {};
  /// In the place of threads that are linked by sim_device, where it is not empty.
  std::function<LittleDevice()> make_device = {};
};

/// A run whose players are on nodes, which are all in this process, with the threads and channels
/// that they would have in processes of their own. Their devices compute on threads, and are linked
/// by sim_device.
class LittleCluster {
 public:
  LittleCluster(const Piece& piece, const ClusterOrder& order);
  ~LittleCluster();

  /// Plays to the end.
  Played play();

  // While it plays, on any thread.

  /// A node dies: its devices do nothing any more, and its channels end without a word.
  void kill(int node);
  /// Its devices do nothing any more, and nobody hears of that.
  void freeze_devices(int node);
  /// What its devices are given from now on is never done, nor let go.
  void block_devices(int node);
  /// Its devices fail, and do nothing more for this process.
  void break_devices(int node);
  /// The first of its stages has failed, as far as the head hears.
  void fail_player(int node);

  sim_device::SimWorld& world() { return world_; }
  /// What the head has been told by nodes whose process had to end.
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
  transport::ChannelThread channels_;
  NodePool pool_;
  std::vector<std::unique_ptr<LittleNode>> nodes_;
  std::unique_ptr<RemotePlayerHost> player_host_;
  mutable std::mutex mutex_;
  std::string stuck_;
  std::atomic<std::size_t> bytes_left_{0};
};

}  // namespace troupe::actors
