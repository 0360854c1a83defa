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

#include "actors/caf_shim.h"
#include "actors/lead/player_host.h"
#include "actors/lead/run_driver.h"
#include "actors/nodes/attempt.h"
#include "actors/nodes/lineup.h"
#include "actors/nodes/loss_plans.h"
#include "actors/nodes/node_pool.h"
#include "core/env.h"
#include "kernels/linear.h"

namespace troupe::actors {

struct RemoteOrder {
  std::string run;
  Value config;    // Complete, with all values chosen for the run.
  int fewest = 1;  // The least number of nodes of an attempt,
  int most = 1;    // the most that it uses,
  kernels::Precision least = kernels::Precision::fp32;  // and their least precision.
  std::chrono::milliseconds node_patience{60'000};      // The time to wait for nodes at first,
  std::chrono::milliseconds gather_patience{5'000};     // for the nodes of an earlier head,
  std::chrono::milliseconds suspend_patience{60'000};  // and after losses, once the run has played.
  std::chrono::milliseconds prepare_patience{60'000};  // The time to prepare,
  std::chrono::milliseconds load_patience{600'000};    // and the time to load the weights.
  int futile_epochs = 5;  // Attempts in a row without a new step before it delays the next one,
  int strikes = 3;        // and further ones before it gives up. Also failures that it bears
  std::chrono::nanoseconds strike_window = std::chrono::minutes(10);  // within this time,
  int copies = 1;                                                     // Nodes that keep each state.
  int keep = 3;                                                       // Checkpoints that are kept.
  std::string interface = "127.0.0.1";
  Carriers carriers = Carriers::shm_and_tcp;
  std::optional<transport::KeyPair> keys = {};  // This process's keys.
  PlainTensors plain = PlainTensors::within_machine;
  /// Called on the run's loop when the players' nodes are chosen.
  std::function<void(const Lineup&)> placed;
  /// Called on the run's loop for each decision except that a step is done or saved.
  std::function<void(const decide::Answer&)> decided = [](const decide::Answer&) {};
};

/// The run's side while it has no supervisor, because its plan is not chosen. The host calls the
/// functions on the run's loop; they must not block.
struct UnledRun {
  /// Chooses the plan with these nodes and makes the supervisor, or calls cannot_begin(). Called
  /// once.
  std::function<void(std::vector<NodeHere>)> choose = [](const std::vector<NodeHere>&) {};
  std::function<void(const std::string&)> warn = [](const std::string&) {};
  /// Ends the run, unless it has a supervisor by now.
  std::function<void(const decide::End&)> end = [](const decide::End&) {};
};

/// The log of decisions about a run, which survives its head.
struct DecisionLog {
  decide::JournalRead before;  // Decisions of earlier heads.
  /// Returns when all records are on disk; an error means that none is.
  std::function<Status(const std::vector<decide::Record>&)> write =
      [](const std::vector<decide::Record>&) { return Status(Done{}); };
};

/// The head's side of a run whose players are on nodes. Proxies stand for the players, so the
/// supervisor leads them as if they were local. The run's machine decides when an attempt begins,
/// on which nodes, and how to react to a lost or failed node.
class RemotePlayerHost final : public PlayerHost {
 public:
  /// The environment, the network and the nodes outlive it.
  RemotePlayerHost(Env& env, transport::Network& network, NodePool& nodes, RemoteOrder order,
                   DecisionLog decisions, UnledRun unled = {});
  /// All actors of the run must have ended.
  ~RemotePlayerHost() override;

  int last_attempt() const override { return last_attempt_; }
  Team begin(const caf_shim::Spawner& spawner, const AttemptContext& attempt_context, int attempt,
             Origin origin) override;
  void failed(std::optional<PlayerId> player, const std::string& why) override;
  void refuse(PlayerId player, const std::string& why) override;
  std::optional<std::string> node_of(PlayerId player) const override;
  void tell(decide::Event event) override;
  void over(Outcome::How how) override;
  /// Waits for the nodes with which the plan of a run is chosen. If the plan is known, the first
  /// attempt does it. Any thread may call it.
  void open();
  /// Ends a run without a supervisor, whose plan could not be chosen or recorded. Any thread may
  /// call it.
  void cannot_begin(const std::string& why) { take(decide::RunFailed{why}); }

  /// Returns those of the nodes that the run should use now.
  std::vector<NodeHere> choose(std::vector<NodeHere> nodes) const;

  /// Returns whether the run gave up because it had too few nodes. Any thread may call it.
  bool lacked_nodes() const { return lacked_nodes_; }

  /// If the run stops after this, the next life of the head continues it, so nodes keep their
  /// states. Any thread may call it.
  void leave() { comes_back_ = true; }

  /// Called after the run has ended: makes no more decisions, so nodes and channels may be
  /// destroyed. Later events are ignored.
  void end() { loop_->end(); }

  /// Changes the order from the next attempt on. Any thread may call it.
  void change(RemoteOrder order);
  /// Changes only the configuration in it.
  void change_config(Value config);

  /// Handles a node's message about this run. Any thread may call it.
  void heard(std::uint64_t node, transport::Message message);
  /// Notes that a node has joined or is usable again. Any thread may call it.
  void arrived();
  /// Notes that a node is gone. Any thread may call it.
  void lost(const NodeHere& node, const NodeLoss& loss);

 private:
  using Life = decide::Life;
  /// The current attempt and its progress.
  struct Progress {
    int number = 0;
    std::weak_ptr<Attempt> attempt;
    Env::Time began{}, found{}, ready{};
    bool is_planned = false, has_begun = false;
    std::uint64_t id = 0;  // The machine's number of it; valid if planned.
  };

  // The functions below run on the run's loop.
  void take(decide::Event event) { driver_.take(std::move(event)); }
  void boot();
  void hear_ledger();
  void stage_is_free(int number, std::weak_ptr<Attempt> attempt);
  void tick(int number);
  void look_at_nodes();
  void failed_on(decide::Life life, std::uint64_t attempt, const std::string& why);
  void carry_out(const decide::Answer& answer);
  void on(const decide::MakePlan& order);
  void on(const decide::Prepare& order);
  void on(const decide::Load& order);
  void on(const decide::Begin& order);
  void on(const decide::EndAttempt& order);
  void on(const decide::HoldRounds& order) { post(order); }
  void on(const decide::PlayOn& order) { post(order); }
  void on(const decide::Collect& order) { post(order); }
  void on(const decide::ApplyChanges& order) { post(order); }
  void on(const decide::SkipStep& order) { post(order); }
  void on(const decide::Warn& order);
  void on(const decide::End& order);
  decide::End told(decide::End end);
  void on(const decide::SetTimer&) {}  // The driver has set it.
  void start(const decide::Load& order);
  void plan();
  void foresee();
  void tell_keepers(int number);
  void end_attempt(int number, const std::string& why, EndCause cause);
  /// Sends the supervisor a message.
  template <class Message>
  void post(const Message& message) const {
    std::unique_lock lock(mutex_);
    const auto supervisor = supervisor_;
    lock.unlock();
    caf_shim::post(supervisor, message);
  }
  void hold_against(const decide::Record& strike);

  decide::Limits limits(const decide::State& state) const;
  std::shared_ptr<Attempt> newest() const;
  std::optional<NodeHere> blamed(PlayerId player) const;
  RemoteOrder order() const;

  Env& env_;
  transport::Network& network_;
  NodePool& nodes_;
  RemoteOrder order_;
  DecisionLog decisions_;
  const UnledRun unled_;
  const bool has_begun_before_;  // In an earlier life of the head.
  const int last_attempt_;
  MemoryPool memory_;  // For states in transit; outlives all attempts.
  std::atomic<bool> has_played_ = false;
  std::atomic<bool> comes_back_ = false;
  std::atomic<bool> lacked_nodes_ = false;
  std::atomic<bool> looks_soon_ = false;
  std::atomic<bool> foresees_soon_ = false;
  std::atomic<std::uint64_t> playing_ = 0;  // The attempt that plays, by the machine's number.
  mutable std::mutex mutex_;
  std::weak_ptr<Attempt> attempt_;  // Its proxies own it.
  std::shared_ptr<const Blame> blame_;
  caf::weak_actor_ptr supervisor_;

  const std::unique_ptr<Loop> loop_;
  // Used by the loop.
  Progress progress_;
  bool is_led_ = false;                    // Whether the run has a supervisor.
  bool has_asked_ = false;                 // The run chooses its plan, or has done so.
  std::optional<decide::End> early_end_;   // Came before the supervisor.
  Env::Time looked_{};                     // When it last looked at nodes that came.
  std::optional<decide::MakePlan> asked_;  // Waits until an attempt can use it.
  Lineup lineup_;                          // The latest plan's.
  LossPlans loss_plans_{*loop_};
  std::string last_reason_;
  std::vector<decide::Row> last_rows_;
  std::string last_end_;  // The node of the last process that ended, and how.

  RunDriver driver_;
};

}  // namespace troupe::actors
