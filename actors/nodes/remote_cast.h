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

#include "actors/nodes/attempt.h"
#include "actors/nodes/foresight.h"
#include "actors/nodes/lineup.h"
#include "actors/nodes/node_pool.h"
#include "actors/nodes/reconciling.h"
#include "actors/play/cast.h"
#include "kernels/linear.h"

namespace troupe::actors {

struct RemoteOrder {
  std::string run;
  Value config;    // With everything in it that was chosen for the run.
  int fewest = 1;  // Nodes without which an attempt does not begin,
  int most = 1;    // and how many it takes,
  kernels::Precision least = kernels::Precision::fp32;  // with so good products at least.
  std::chrono::milliseconds node_patience{60'000};      // Until there are as many at first,
  std::chrono::milliseconds gather_patience{5'000};     // until those of an earlier head are back,
  std::chrono::milliseconds suspend_patience{60'000};   // and once it has played, where some go.
  std::chrono::milliseconds prepare_patience{60'000};   // Until they have prepared,
  std::chrono::milliseconds load_patience{600'000};     // and then have the weights.
  int futile_epochs = 5;  // Attempts in a row without a new step before it waits longer,
  int strikes = 3;        // and how many more of them it survives.
  std::string interface = "127.0.0.1";
  Carriers carriers = Carriers::shm_and_tcp;
  std::optional<transport::KeyPair> keys = {};  // Of this process.
  PlainTensors plain = PlainTensors::within_machine;
  /// Where its players are, once that is known; on the reconciler's thread.
  std::function<void(const Lineup&)> placed;
};

/// What is decided about a run, from one life of its head to the next.
struct Decisions {
  reconciler::JournalRead before;  // By earlier ones.
  /// Returns when they are on the disk; an error means that none of them is.
  std::function<Status(const std::vector<reconciler::Record>&)> write =
      [](const std::vector<reconciler::Record>&) { return Status(Done{}); };
};

/// The head's side of a run whose players are on nodes: envoys stand for all of them, so that its
/// supervisor leads them as if they were here. When an attempt begins, on which nodes, what is done
/// about one that goes or fails: that the reconciler decides.
class RemoteCasting final : public Casting {
 public:
  RemoteCasting(NodePool& nodes, transport::ChannelThread& channels, RemoteOrder order,
                Decisions decisions);
  /// All actors of the run have ended.
  ~RemoteCasting() override;

  Company begin(caf::actor_system& system, const Backstage& backstage, int attempt,
                Origin origin) override;
  std::optional<std::string> set_aside(PlayerId player, const std::string& why) override;
  void refuse(PlayerId player, const std::string& why) override;
  bool strike_node(const std::string& node, const std::string& why) override;
  void committed(std::int64_t step) override;
  void over(Outcome::How how) override;
  /// Of the nodes that a run could use those that it is to use now.
  std::vector<NodeHere> choose(std::vector<NodeHere> nodes) const;

  /// Whether the run was given up because it had too few nodes. Any thread.
  bool lacked_nodes() const { return lacked_nodes_; }

  /// Where the run is stopped now, the next life of its head goes on with it: nodes keep what they
  /// have of it. Any thread.
  void leave() { comes_back_ = true; }

  /// Once the run has ended: decides nothing any more, so that nodes and channels may go. It may
  /// still be told of them.
  void end() { reconciling_.end(); }

  /// From the next attempt on; any thread.
  void change(RemoteOrder order);

  /// What a node says about this run; any thread.
  void heard(std::uint64_t node, transport::Message message);
  /// A node has come, or may be used again; any thread.
  void arrived();
  /// A node is gone; any thread.
  void lost(const NodeHere& node, const NodeLoss& loss);

 private:
  using Clock = std::chrono::steady_clock;
  using Life = reconciler::Life;
  /// The attempt that has the stage, and what is done with it.
  struct Progress {
    int number = 0;
    std::weak_ptr<Attempt> attempt;
    Clock::time_point began{}, found{}, ready{};
    bool is_planned = false, has_begun = false;
    std::uint64_t epoch = 0;  // Where it is planned.
  };

  // On the reconciler's thread.
  void take(reconciler::Event event) { reconciling_.take(std::move(event)); }
  void stage_is_free(int number, std::weak_ptr<Attempt> attempt);
  void tick(int number);
  void look_at_nodes(bool all_have_stopped);
  void failed_on(const NodeHere& node, std::uint64_t epoch, const std::string& why);
  void carry_out(const reconciler::Answer& answer);
  void on(const reconciler::MakePlan& order);
  void on(const reconciler::Prepare& order);
  void on(const reconciler::FindLine& order);
  void on(const reconciler::Load& order);
  void on(const reconciler::Activate& order);
  void on(const reconciler::Freeze& order);
  void on(const reconciler::Abort& order);
  void on(const reconciler::Warn& order);
  void on(const reconciler::End& order);
  template <class Other>
  void on(const Other&) {}  // Its supervisor saves, and leads it to boundaries.
  void plan();
  void foresee();
  void tell_keepers(int number, std::uint64_t epoch);
  void cannot_begin(int number, const std::string& why, Cause cause);
  void hold_against(const reconciler::Record& strike);

  reconciler::Limits limits(const reconciler::State& state) const;
  std::shared_ptr<Attempt> newest() const;
  RemoteOrder order() const;

  NodePool& nodes_;
  transport::ChannelThread& channels_;
  RemoteOrder order_;
  Decisions decisions_;
  MemoryPool memory_;  // Of states on their way; outlives all attempts.
  std::atomic<bool> has_played_ = false;
  std::atomic<bool> comes_back_ = false;
  std::atomic<bool> lacked_nodes_ = false;
  std::atomic<std::uint64_t> epoch_ = 0;  // That is played.
  mutable std::mutex mutex_;
  std::weak_ptr<Attempt> attempt_;  // Its envoys hold it.

  // Of the reconciler's thread.
  Progress progress_;
  std::optional<reconciler::MakePlan> asked_;  // Until an attempt can have it.
  Lineup lineup_;                              // Of the newest plan.
  Foresight foresight_;
  std::string last_reason_;
  std::string last_end_;              // Of a process: on which node, and how.
  std::optional<std::string> ended_;  // And why.

  Reconciling reconciling_;  // Last: its thread uses the others.
};

}  // namespace troupe::actors
