#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/decide/running_median.h"
#include "actors/messages.h"
#include "actors/nodes/remote_players.h"
#include "apps/client/reply.h"
#include "apps/events/run_counters.h"
#include "apps/head/full_disk.h"
#include "apps/head/head_service.h"
#include "apps/head/node_gate.h"
#include "apps/head/supervisor_handle.h"
#include "apps/program_context.h"
#include "apps/run/replanner.h"
#include "apps/run/run_choice.h"
#include "apps/run/run_session.h"
#include "config/load.h"
#include "core/threads/event_fd.h"
#include "transport/control/publisher.h"

namespace troupe::apps {

/// A run that the head leads on a loop of its own, from a valid configuration to its end.
class HeadRun {
 public:
  struct Context {
    ProgramContext program;
    actors::NodePool& nodes;
    std::string interface;
    std::optional<transport::KeyPair> keys;  // The head's keys.
    actors::PlainTensors plain = actors::PlainTensors::within_machine;
    transport::Publisher& publisher;           // Publishes every event.
    std::function<void(const Value&)> notify;  // Receives every event as well; may be empty.
    // Called at the run's end, before the end is published; any thread.
    std::function<void(const RunStanding&)> ended;
    /// Called when nothing of the run is needed any more except its report; any thread.
    std::function<void()> over;
    /// Records the choices made for the run; any thread.
    std::function<Status(const RunChoice&)> chosen;
  };

  HeadRun(config::Loaded loaded, RunSetup setup, RunStart start, Context around);
  /// Drops a run that has not ended.
  ~HeadRun() { close(); }

  /// Makes the plan and enters the run's folder, before start(). Uses `kept`, the choices of an
  /// earlier life of the head, if given. Else it chooses now if there are enough nodes, or as soon
  /// as there are.
  Status prepare(std::optional<RunChoice> kept = {});
  std::optional<RunChoice> choice() const;
  /// Returns the new folder of an earlier run of this name; empty if there was none.
  const std::string& moved() const { return session_.place().moved; }
  void start();

  RunStanding report() const;
  RunNumbers numbers() const { return counters_.numbers(); }
  void drain();
  /// Drains the run because the head ends; it resumes in the head's next life.
  void leave();
  /// Calls `then`, on any thread, once the run has ended, or at once if it has not begun.
  void when_ended(std::function<void()> then);
  /// Ends its loops: it makes no more decisions, and later events are ignored. For a run that has
  /// ended. Its own loop must not call it.
  void close();
  void stop_now();
  void pause(bool paused);

  /// Called once, on any thread, with the number of steps done or an error.
  using Answer = std::function<void(Result<std::int64_t>)>;
  /// Finishes what is in flight and saves it.
  void save(Answer answer);
  /// Sets a live key: a learning rate from step `from` on, or from the next possible step. Returns
  /// errors that are certain at once; `answer` is then not called.
  std::optional<Refusal> set(const std::string& setting, std::optional<std::int64_t> from,
                             Answer answer);
  /// Saves, and continues with the nodes that may be used then.
  void cast_anew(Answer answer);
  bool plays_on(const std::string& node) const;
  /// A node that plays this run, and its devices of the run.
  struct NodeOfRun {
    struct DeviceThere {
      int device = 0;
      std::vector<int> stages;
    };

    actors::NodeHere node;
    std::vector<DeviceThere> devices = {};
  };
  /// Returns the nodes that play this run by the plan in force.
  std::vector<NodeOfRun> nodes_of_run() const;
  /// Returns whether the node supports the run's precision.
  bool can_use(const actors::NodeHere& node) const;
  int fewest_nodes() const;
  NodePatience patience() const {
    return {session_.config().limits.silence_floor, session_.config().limits.reconnect_patience};
  }
  /// Injects a fault: nothing of the run can be saved for `time`.
  void fill_disk(std::chrono::nanoseconds time) { disk_.fill_for(time); }

  /// Handles a message of a node.
  void heard(std::uint64_t node, transport::Message message);
  void lost(const actors::NodeHere& node, const actors::NodeLoss& loss);
  /// Handles a new node: it gets a part at a save point if that pays, or is told why it gets none.
  void arrived(const actors::NodeHere& node);

 private:
  void begin();
  void choose_first(std::vector<actors::NodeHere> nodes);
  void play();
  void end_unled(const actors::decide::End& end);
  void stop_unled(const actors::decide::StopAsked& stop);
  void played(actors::Outcome outcome);
  void over(actors::Outcome& outcome);
  Status make(RunSetup setup);
  Status choose(std::vector<actors::NodeHere> nodes, RunSetup& setup);
  Status choose_and_make(std::vector<actors::NodeHere> nodes);
  actors::UnledRun unled();
  void tell_choice();
  void tell_unfit(const actors::NodeHere& node);
  std::optional<Replanner::Standing> standing() const;
  void open_plan(config::Loaded& loaded) const;
  void begin_switch();
  Result<actors::RunSpecPtr> switch_to(const RunChoice& choice);
  void record(const Value& event);
  void ended();
  void tell_ended();
  void tell_head(const std::string& state, const std::string& why);
  void placed(const actors::Lineup& lineup);
  void learn(const Value& step);
  void learn_straggler(const Value& event);
  std::shared_ptr<const config::Loaded> now() const;
  actors::RemoteOrder order(const config::Loaded& loaded);
  Result<actors::RunSpecPtr> change(const std::string& setting, std::optional<std::int64_t> from,
                                    std::int64_t step);
  Result<actors::RunSpecPtr> leave_out(std::int64_t step);
  Result<actors::RunSpecPtr> take_over(config::Loaded loaded);
  void tell(const Value& event);

  FullDisk disk_;  // The file system for its checkpoints.
  // Its own, so that a run whose disk is stuck holds up no other run.
  std::unique_ptr<actors::caf_shim::System> system_;
  RunSession session_;          // Uses `disk_`.
  const Value asked_pipeline_;  // The pipeline as configured, without any choices.
  bool takes_any_precision_;    // The configuration sets no precision.
  Context around_;
  RunSetup setup_;
  SupervisorHandle supervisor_;
  actors::DecisionLog decisions_;  // Moved to the player host when that is made.
  std::unique_ptr<actors::RemotePlayerHost> player_host_;
  RunCounters counters_;
  mutable std::mutex mutex_;
  RunStanding report_;
  static constexpr std::size_t most_step_times = 16;
  actors::LastNumbers step_times_{most_step_times};  // Seconds of the last steps of this plan.
  std::shared_ptr<const config::Loaded> now_;        // Includes live changes.
  std::optional<RunChoice> choice_;
  std::vector<UnitTimes> times_;                         // See RunSetup::times.
  kernels::Precision least_ = kernels::Precision::fp32;  // The minimum precision of its nodes.
  std::optional<actors::Lineup> lineup_;                 // The lineup of the plan in force.
  std::function<void(const Value&)> record_;
  enum class Life { waits_for_start, lives, has_ended } life_ = Life::waits_for_start;
  std::vector<std::function<void()>> when_ended_;

  // Used by the loop.
  bool is_open_ = false;                                 // The run's machine waits for nodes.
  bool has_played_ = false;                              // The run has or had a supervisor.
  std::optional<actors::decide::StopAsked> early_stop_;  // Came before either.
  const std::unique_ptr<Loop> loop_;
  Replanner replanner_;  // Last: its thread uses the members above.
};

}  // namespace troupe::apps
