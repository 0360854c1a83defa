#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/assembled.h"
#include "actors/decide/sources.h"
#include "actors/end_cause.h"
#include "actors/nodes/lineup.h"
#include "actors/nodes/may.h"
#include "actors/nodes/mesh.h"
#include "actors/nodes/node_pool.h"
#include "actors/nodes/proxy.h"
#include "actors/nodes/run_orders.h"
#include "actors/play/players.h"
#include "core/env.h"
#include "core/memory/memory_pool.h"
#include "transport/network.h"

namespace troupe::actors {

/// The nodes of an attempt's players, which outlives the attempt: its last player may be gone
/// before the supervisor hears of the first. Any thread may call the functions.
class Blame {
 public:
  /// Sets the nodes by process.
  void set(Placement placement, std::vector<NodeHere> nodes);
  /// No node is to blame any more.
  void clear();
  /// Returns the player's node, or nothing if no node is to blame for the end of the attempt.
  std::optional<NodeHere> of(PlayerId player) const;

 private:
  mutable std::mutex mutex_;
  Placement placement_;
  std::vector<NodeHere> nodes_;
};

/// One attempt of a run whose players are on nodes. It begins when the previous attempt is gone and
/// is over when its last proxy is gone; then its owner calls end(). The caller decides when to
/// prepare, load, start and begin, and from which state. Nothing waits. Work aside holds the
/// attempt, so it may outlive its end for a while.
class Attempt : public std::enable_shared_from_this<Attempt> {
 public:
  struct Context {
    Env& env;
    Loop& loop;
    NodePool& nodes;
    transport::Network& network;
    MemoryPool& memory;  // For states in transit.
    std::string run;
    std::string interface;
    Carriers carriers = Carriers::shm_and_tcp;
    std::optional<transport::KeyPair> keys;  // This process's keys.
    PlainTensors plain = PlainTensors::within_machine;
    /// Called on any thread when a node has prepared, with the states in its memory.
    std::function<void(std::uint64_t node, std::vector<KeptStep> kept)> prepared;
    /// Called on any thread when two nodes cannot reach each other.
    std::function<void(const NodeHere& one, const NodeHere& other, const std::string& why)>
        pair_lost;
  };

  Attempt(Context around, const AttemptContext& attempt_context, int number, Origin origin);
  /// Stops the nodes. Nothing that arrives later counts.
  void end();

  const RunSpec& spec() const { return *spec_; }
  std::int64_t committed() const { return origin_.committed; }
  std::map<PlayerId, caf::weak_actor_ptr>& proxies() { return proxies_; }

  // The loop calls these in this order. It calls back unless the attempt is over.

  Status prepare(const Lineup& lineup, const Value& config);
  /// Loads a state, unless it is in nodes' memory. If that fails, another one may be loaded.
  void load(const StateSource& source, std::function<void(Status)> loaded);
  void start(std::function<void(Status)> started);
  /// Returns, after start(), the nodes that keep each optimizer's state.
  std::vector<std::vector<std::uint64_t>> keepers() const;
  void begin(std::chrono::nanoseconds nodes, std::chrono::nanoseconds prepare,
             std::chrono::nanoseconds load);

  // Any thread may call the functions below.

  /// Tells the supervisor that the players are waiting, not stuck.
  void wait(const std::string& for_what);
  /// Tells the supervisor something that the user should know.
  void remark(const std::string& text);
  /// Passes a proxy's message to its player, after the attempt has begun.
  Status carry(PlayerId to, WireMessage wire_message);
  /// Handles a node's message about the run. An invalid one is refused and counts as a strike.
  void heard(std::uint64_t node, transport::Message message);
  /// Returns who is to blame for the end of the attempt.
  std::shared_ptr<const Blame> blame() const { return blame_; }
  /// Ends the proxies of all players on a node.
  void end_all_of(std::uint64_t node, const std::string& why, EndCause cause);
  /// Ends the attempt, unless a node is known to be to blame.
  void cannot_begin(const std::string& why, EndCause cause = EndCause::failed);

 private:
  bool is_in_memory() const { return source_.from == StateSource::From::memory; }
  Status tell_start();
  Status give_state();
  std::vector<std::int64_t> tokens_of(std::size_t from) const;
  MeshProtection protection(const Lineup& lineup) const;
  void remark_on_links();
  Status take(std::uint64_t node, transport::Message message);
  Status take_from(int process, PlayerId to, WireMessage wire_message) const;
  void aside(Loop::Task work, Loop::Task then);
  Status prepared(int process, std::uint64_t node, const transport::Message& message);
  Status measured(int process, std::uint64_t node, const transport::Message& message);
  int process_of(std::uint64_t node) const;
  Status say(const NodeHere& node, transport::Message message) const;
  void end(const StageFailed& failed) const;
  void end_process(int process, const PlayerEnded& ended) const;
  void doubt(int process);
  void refuse(int process, const std::string& why);
  Status hear_lost(int process, std::string_view type, std::optional<int> lost, std::string& why);
  std::string name_of(int process) const;

  const Context around_;
  RunSpecPtr spec_;
  const RunBounds bounds_;
  caf::weak_actor_ptr supervisor_;
  int number_;
  Origin origin_;
  std::map<PlayerId, caf::weak_actor_ptr> proxies_;
  const std::shared_ptr<Blame> blame_ = std::make_shared<Blame>();

  // Used by the sequence prepare() to begin().
  StateSource source_;
  StartPoint loaded_;                              // Set if the source is not in memory.
  std::vector<std::vector<int>> keepers_;          // Indexed by optimizer.
  std::vector<std::vector<std::int64_t>> tokens_;  // [to][from]

  std::mutex mutex_;
  std::atomic<bool> is_over_ = false;
  std::string failure_;         // The failure of the first failed node.
  std::vector<NodeHere> used_;  // Indexed by process.
  Placement placement_;
  std::vector<MeshAddress> addresses_;
  std::unique_ptr<Mesh> mesh_;  // Last: its threads use the members above.
};

}  // namespace troupe::actors
