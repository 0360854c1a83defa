#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/nodes/remote_players.h"
#include "apps/events/sinks.h"
#include "apps/host_facts.h"
#include "apps/machine/watchdog.h"
#include "apps/run/process_run.h"
#include "apps/run/run_folder.h"
#include "config/load.h"
#include "core/env.h"
#include "core/result.h"
#include "core/threads/event_fd.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// A run that this process leads, from a good configuration to its end. `troupe train` has one
/// session, and a head has one for each of its runs.
class RunSession {
 public:
  /// The process that leads the run. It outlives the session.
  struct Context {
    Env& env;
    const HostFacts& host;
    storage::Files& folder;  // Locks the run's folder and writes its events.
    storage::Files& saves;   // Writes everything else that the run keeps.
  };

  /// `stuck` is called with the last sign of life once the run has given none for
  /// limits.head_patience.
  RunSession(Context context, config::Loaded loaded, RunStart start,
             std::function<void(const std::string& last)> stuck);

  config::Loaded& loaded() { return loaded_; }
  const config::Loaded& loaded() const { return loaded_; }
  const config::RunConfig& config() const { return loaded_.config; }
  bool resumes() const { return start_ != RunStart::anew; }

  // Prepare, in this order.

  /// Puts what earlier processes have set and chosen for a resumed run into its configuration.
  Status take_earlier();

  /// Plans the run and makes its first state: from the newest checkpoint if the run is resumed. May
  /// be called again with another setup until the run plays.
  Status plan(RunSetup setup, const PlanFor& whom, const DevicesHere& here);

  /// Enters the run's folder (enter_run_place). plan() has done that for a resumed run. A run that
  /// begins anew touches nothing of an earlier run before plan() has succeeded.
  Status enter();

  /// Opens the recorder.
  Status open_events(SinkOptions options);

  // Play. From here on there is a run, a place and a recorder.

  ProcessRun& run() { return *run_; }
  const ProcessRun& run() const { return *run_; }
  const RunPlace& place() const { return place_; }
  Recorder& recorder() { return *recorder_; }
  /// Returns warnings about the first state for the user.
  const std::vector<std::string>& warnings() const { return warnings_; }
  Watchdog& watchdog() { return watchdog_; }

  /// Describes the run in its folder, and returns warnings (describe_run).
  std::vector<std::string> describe();
  /// Returns the order for nodes that play the run, without what depends on the head that gives it.
  /// `loaded` differs from the session's configuration in live keys and plan alone.
  actors::RemoteOrder order(const config::Loaded& loaded) const;
  /// Writes down what was changed while the run plays, so that a process which resumes it knows of
  /// that, however this process ends.
  Status keep(const config::Loaded& changed);

  using LeaveOut = std::function<Result<actors::RunSpecPtr>(std::int64_t step)>;
  /// Plays the run to its end, once. See ProcessRun::play and play_here for the arguments.
  void play(Loop& loop, actors::caf_shim::System& system, ProcessRun::Record record,
            actors::PlayerHost* player_host, std::function<void(const caf::actor&)> led_by,
            std::function<void(actors::Outcome)> ended, LeaveOut leave_out);
  actors::Outcome play_here(EventFd& bell, actors::caf_shim::System& system,
                            ProcessRun::Record record, actors::PlayerHost* player_host,
                            std::function<void()> asked, LeaveOut leave_out = {});

  /// Asks the run to finish what is in flight, save and stop, also before it plays. The run's loop
  /// calls it.
  void drain();

  // End.

  /// Kills the actors of a run that has not ended, and waits for them. The run's loop must have
  /// ended.
  void drop() {
    if (run_) run_->drop();
  }
  /// Returns whether export_weights() has something to do.
  bool exports(const actors::Outcome& outcome) const {
    return outcome.how == actors::Outcome::How::done && config().train.export_path;
  }
  /// Exports the weights of a run that is done, if the configuration asks for that. If that fails,
  /// the run has failed.
  void export_weights(actors::Outcome& outcome);
  /// Lets the next writer into the run's folder. Nothing of the run may be saved after this.
  void give_back() { place_.give_back(); }

 private:
  ProcessRun::Context run_context(actors::caf_shim::System& system, ProcessRun::Record record,
                                  actors::PlayerHost* player_host);

  const Context context_;
  config::Loaded loaded_;
  const RunStart start_;
  RunPlace place_;
  std::vector<std::string> warnings_;
  std::unique_ptr<Recorder> recorder_;
  Watchdog watchdog_;
  bool drains_ = false;
  std::unique_ptr<ProcessRun> run_;  // Last: its threads use the members above.
};

/// Returns "done", "stopped" or "failed".
std::string state_of(const actors::Outcome& outcome);

}  // namespace troupe::apps
