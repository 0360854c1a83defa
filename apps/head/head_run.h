#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "actors/messages.h"
#include "actors/nodes/remote_players.h"
#include "apps/client/reply.h"
#include "apps/head/full_disk.h"
#include "apps/head/head_service.h"
#include "apps/head/node_gate.h"
#include "apps/head/supervisor_handle.h"
#include "apps/machine/watchdog.h"
#include "apps/run/process_run.h"
#include "apps/run/replanner.h"
#include "apps/run/run_choice.h"
#include "apps/run/run_folder.h"
#include "config/load.h"
#include "core/threads/event_fd.h"

namespace troupe::apps {

/// A run that the head leads: on a thread of its own, from a good configuration to its end.
class HeadRun {
 public:
  struct Context {
    actors::NodePool& nodes;
    transport::ChannelThread& channels;
    std::string interface;
    std::optional<transport::KeyPair> keys;  // The head's.
    actors::PlainTensors plain = actors::PlainTensors::within_machine;
    std::function<void(const Value&)> publish;      // Every event; any thread.
    std::function<void(const RunStanding&)> ended;  // Likewise; before anybody else hears of it.
    /// Likewise, at the end: nothing of it is needed any more but its report.
    std::function<void()> over;
    /// Likewise: keeps what was chosen for it.
    std::function<Status(const RunChoice&)> chosen;
  };

  HeadRun(config::Loaded loaded, RunSetup setup, RunStart start, Context around);
  ~HeadRun() { finish(); }

  /// Whether the plan can be made, and its folder: before start(). What was chosen in an earlier
  /// life of the head is gone on with; else it is chosen now where there are nodes enough, or as
  /// soon as there are.
  Status prepare(std::optional<RunChoice> kept = {});
  std::optional<RunChoice> choice() const;
  void start();

  RunStanding report() const;
  void drain();
  /// Drains it as its head ends, whose next life goes on with it.
  void leave();
  /// Drains it, and waits until it has ended.
  void finish();
  void stop_now();
  void pause(bool paused);

  /// Told once, on any thread: after how many steps, or why not.
  using Answer = std::function<void(Result<std::int64_t>)>;
  /// Finishes what is in flight, and saves it.
  void save(Answer answer);
  /// Sets a live key: a learning rate from so many steps on, or from the next one that can be.
  /// What is wrong with it in any case is said at once, and not told.
  std::optional<Refusal> set(const std::string& setting, std::optional<std::int64_t> from,
                             Answer answer);
  /// Saves, and goes on with the nodes that may be used then.
  void cast_anew(Answer answer);
  bool plays_on(const std::string& node) const;
  /// Whether it has what the run computes in.
  bool can_use(const actors::NodeHere& node) const;
  int fewest_nodes() const;
  NodePatience patience() const {
    return {loaded_.config.limits.silence_floor, loaded_.config.limits.reconnect_patience};
  }
  /// A drill: nothing of it can be saved for so long.
  void fill_disk(std::chrono::nanoseconds time) { disk_.fill_for(time); }

  /// What a node says.
  void heard(std::uint64_t node, transport::Message message);
  void lost(const actors::NodeHere& node, const actors::NodeLoss& loss);
  /// A node has come: it gets a part at a save point, where that pays; or hears why it gets none.
  void arrived(const actors::NodeHere& node);

 private:
  void run();
  Status make(RunSetup setup);
  Status enter_place();
  Status choose(std::vector<actors::NodeHere> nodes, RunSetup& setup);
  /// Once there are as many nodes as it begins with.
  Status choose_late();
  void tell_choice();
  void tell_unfit(const actors::NodeHere& node);
  actors::Outcome play();
  std::optional<Replanner::Standing> standing() const;
  void open_plan(config::Loaded& loaded) const;
  void begin_switch();
  Result<actors::RunSpecPtr> switch_to(const RunChoice& choice);
  void record(class Recorder& recorder, const Value& event);
  void end(const std::string& state, const std::string& why);
  void tell_head(const std::string& state, const std::string& why);
  void placed(const actors::Lineup& lineup);
  void learn(const Value& step);
  std::shared_ptr<const config::Loaded> now() const;
  actors::RemoteOrder order(const config::Loaded& loaded);
  Result<actors::RunSpecPtr> change(const std::string& setting, std::optional<std::int64_t> from,
                                    std::int64_t step);
  void tell(const Value& event);

  config::Loaded loaded_;
  const Value asked_pipeline_;             // With what is chosen for it still open.
  std::atomic<bool> lacks_nodes_ = false;  // Fewer came than it begins with.
  bool resume_;
  SavesGone saves_gone_;
  bool takes_any_precision_;  // The configuration names none.
  Context around_;
  // Its own: what a run was set up with goes when the nodes that come want another one.
  std::unique_ptr<storage::Files> files_ = storage::disk_files();
  FullDisk disk_;  // Where it is saved.
  RunSetup setup_;
  RunPlace place_;
  std::vector<std::string> warnings_;  // That its beginning gave.
  SupervisorHandle supervisor_;
  Watchdog watchdog_;  // Of run_, which ends before it.
  std::unique_ptr<ProcessRun> run_;
  actors::DecisionLog decisions_;  // Until there is a casting.
  std::unique_ptr<actors::RemotePlayerHost> player_host_;
  EventFd bell_;
  mutable std::mutex mutex_;
  RunStanding report_;
  std::shared_ptr<const config::Loaded> now_;  // With what was set meanwhile.
  std::optional<RunChoice> choice_;
  kernels::Precision least_ = kernels::Precision::fp32;  // That its nodes must have.
  std::optional<actors::Lineup> lineup_;                 // Of the plan in force.
  std::atomic<bool> ends_ = false;                       // Whoever waits for nodes need not.
  std::function<void(const Value&)> record_;
  std::thread thread_;
  Replanner replanner_;  // Last: its thread uses the others.
};

}  // namespace troupe::apps
