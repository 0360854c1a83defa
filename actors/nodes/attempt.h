#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "actors/assembled.h"
#include "actors/cause.h"
#include "actors/nodes/envoy.h"
#include "actors/nodes/lineup.h"
#include "actors/nodes/may.h"
#include "actors/nodes/mesh.h"
#include "actors/nodes/node_pool.h"
#include "actors/nodes/run_orders.h"
#include "actors/play/cast.h"
#include "actors/play/lines.h"
#include "core/memory/memory_pool.h"

namespace troupe::actors {

/// What an attempt begins with: a state in the memory of nodes, or one that was loaded.
struct NewestState {
  std::optional<Found> in_memory;
  StartPoint loaded;  // If nothing is in memory.

  std::int64_t step() const { return in_memory ? in_memory->step : loaded.step; }
};
/// The newest one that there is. A state in memory that is older than the newest checkpoint, which
/// is of step `saved`, is still newer than the one that is loaded if that checkpoint is damaged.
Result<NewestState> newest_state(std::optional<Found> in_memory, std::int64_t saved,
                                 const std::function<Result<StartPoint>()>& load);

/// One attempt of a run whose players are on nodes: from the moment at which nothing of the one
/// before is left until the last envoy is gone, who hold it. What is done one after the other
/// (prepare, find a state, start, begin) somebody else decides.
class Attempt : public std::enable_shared_from_this<Attempt> {
 public:
  struct Surroundings {
    NodePool& nodes;
    transport::ChannelThread& channels;
    MemoryPool& memory;  // Of states on their way.
    std::string run;
    std::string interface;
    Carriers carriers = Carriers::shm_and_tcp;
    std::optional<transport::KeyPair> keys;  // Of this process.
    PlainTensors plain = PlainTensors::within_machine;
    /// A node has prepared; any thread.
    std::function<void(std::uint64_t node)> prepared;
    /// Two nodes do not reach each other; any thread.
    std::function<void(const NodeHere& one, const NodeHere& other, const std::string& why)>
        pair_lost;
  };

  Attempt(Surroundings around, const Backstage& backstage, int number, Origin origin);
  ~Attempt();

  const RunSpec& spec() const { return *spec_; }
  std::int64_t committed() const { return origin_.committed; }
  std::map<PlayerId, caf::weak_actor_ptr>& envoys() { return envoys_; }

  // In this order; what they are told is told on any thread.

  Status prepare(const Lineup& lineup, const Value& config);
  /// In the memory of these nodes, or else on the disk: how many steps were done.
  void find_state(std::function<void(Result<std::int64_t>)> found);
  void start(std::function<void(Status)> started);
  /// Once it has started: by optimizer the nodes that keep its state.
  std::vector<std::vector<std::uint64_t>> keepers() const;
  void begin(std::chrono::nanoseconds nodes, std::chrono::nanoseconds prepare,
             std::chrono::nanoseconds load);

  // Any thread.

  /// To the supervisor: nobody stands still, all wait for something else.
  void wait(const std::string& for_what);
  /// Likewise: somebody should know this.
  void remark(const std::string& text);
  /// Likewise: no attempt of the run will ever begin.
  void give_up(const std::string& why);
  /// From an envoy, once all are assembled: to its player.
  Status carry(PlayerId to, Dispatch dispatch);
  /// What a node says about the run. What it must not say is refused, and strikes the node.
  void heard(std::uint64_t node, transport::Message message);
  /// Where this player is; nothing where what ended the attempt is no node's fault.
  std::optional<NodeHere> blamed(PlayerId player);
  /// All players that are there end.
  void end_all_of(std::uint64_t node, const std::string& why, Cause cause);
  /// The process of a node has ended.
  void process_ended(const NodeHere& node, const NodeLoss& loss);
  /// Where it is not known already that a node is to blame.
  void cannot_begin(const std::string& why, Cause cause = Cause::failed);

 private:
  Status find_state();
  Status start();
  MeshProtection protection(const Lineup& lineup) const;
  void remark_on_links();
  Status take(std::uint64_t node, transport::Message message);
  Status take_from(int process, PlayerId to, Dispatch dispatch) const;
  void aside(std::function<void()> what);
  Status prepared(int process, std::uint64_t node, const transport::Message& message);
  int process_of(std::uint64_t node) const;
  Status say(const NodeHere& node, transport::Message message) const;
  void end(const StageFailed& failed) const;
  void end_process(int process, const PlayerEnded& ended) const;
  void doubt(int process);
  void refuse(int process, const std::string& why);
  Status hear_lost(int process, std::string_view type, std::optional<int> lost, std::string& why);
  std::string name_of(int process) const;

  const Surroundings around_;
  RunSpecPtr spec_;
  const RunBounds bounds_;
  caf::weak_actor_ptr supervisor_;
  int number_;
  Origin origin_;
  std::map<PlayerId, caf::weak_actor_ptr> envoys_;

  // Of what is done one after the other.
  std::optional<Found> in_memory_;
  StartPoint loaded_;  // Where nothing newer is in memory.
  std::int64_t step_ = 0;
  std::vector<std::vector<int>> keepers_;          // By optimizer.
  std::vector<std::vector<std::int64_t>> tokens_;  // [to][from]

  std::mutex mutex_;
  bool is_over_ = false;
  bool cannot_begin_ = false;   // For no fault of a node's.
  std::string failure_;         // Of the first node that had one.
  std::vector<NodeHere> used_;  // By process.
  Placement placement_;
  std::vector<MeshAddress> addresses_;
  std::vector<std::vector<KeptStep>> kept_;  // Likewise.
  std::unique_ptr<Mesh> mesh_;
  std::thread aside_;  // For what waits.
};

}  // namespace troupe::actors
