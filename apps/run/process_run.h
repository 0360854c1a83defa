#pragma once

#include <atomic>
#include <caf/all.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/caf_shim.h"
#include "actors/messages.h"
#include "actors/play/linked_device.h"
#include "actors/run_spec.h"
#include "apps/machine/watchdog.h"
#include "apps/run/disk_checkpoints.h"
#include "apps/run/initial_state.h"
#include "apps/run/prepared_plan.h"
#include "apps/run/run_devices.h"
#include "apps/run/run_setup.h"
#include "apps/samples/step_samples.h"
#include "config/recipe.h"
#include "core/env.h"
#include "core/threads/event_fd.h"
#include "schedules/plan/plan.h"

namespace troupe::apps {

/// A process' part of a run: all devices, as in `troupe train` on one machine; some devices, as on
/// a node; or none, as in the head, which leads the run.
class ProcessRun {
 public:
  using Record = std::function<void(const Value&)>;

  /// Plans the run. `files` holds its checkpoints and other files. Errors mean exit code 3.
  /// `loaded` outlives the run.
  static Result<std::unique_ptr<ProcessRun>> make(const config::Loaded& loaded, RunSetup setup,
                                                  storage::Files& files, const PlanFor& whom,
                                                  const DevicesHere& here);
  ~ProcessRun();

  /// Begins with weights as configured: random, or from a file.
  Status start();
  /// Begins with the newest checkpoint that verifies, or at the beginning if no step was ever
  /// saved. Only checkpoints of the run with this id count. Returns warnings for the user.
  Result<std::vector<std::string>> resume(SavesGone saves_gone, const std::string& id);

  /// Returns the configuration with all choices that were made here, from which all other processes
  /// of the run make the same plan.
  Value chosen() const { return chosen(tree_); }
  /// Returns the same for a configuration that differs in live keys only.
  Value chosen(Value tree) const;
  /// Returns the spec of the players here, without functions for checkpoints and events.
  std::shared_ptr<actors::RunSpec> spec() { return spec(config_, recipe_); }

  /// Returns the links of devices by number, null for a device without. `why_not_linked` says why
  /// devices lack links that they want.
  std::vector<actors::LinkedDevice*> linked() const { return devices_.linked(); }
  const std::string& why_not_linked() const { return devices_.why_not_linked(); }
  /// Notes of the devices here. play() records them as warnings.
  DeviceNotes& device_notes() const { return devices_.device_notes(); }

  /// The environment of a playing run.
  struct Context {
    Env& env;
    actors::caf_shim::System& system;
    Watchdog& watchdog;  // Gets the run's signs of life from its first one until its end.
    Record record;       // Records an event; any thread.
    actors::PlayerHost* player_host = nullptr;  // Null: all players are in this process.
    /// The claim for its checkpoints; null: no other process can be saving there.
    const storage::RootClaim* claim = nullptr;
    /// Leaves out a step, counted from 1: writes that down, and returns the changed spec. The
    /// supervisor calls it. Empty: no step can be left out.
    std::function<Result<actors::RunSpecPtr>(std::int64_t step)> leave_out = {};
    /// Receives the supervisor when it begins, and a null actor when it has ended.
    std::function<void(const caf::actor&)> led_by = {};
  };
  /// Plays the run to its end, once, and then calls `ended`. All of that happens on the loop, which
  /// outlives the run. If the outcome says that not everything is gone, threads are stuck and the
  /// object cannot be destroyed: report the end and call exit_now().
  void play(Loop& loop, Context around, std::function<void(actors::Outcome)> ended);
  /// Plays the run to its end, for a main function, which waits. A ring of the bell asks for
  /// drain(); `asked` is called first, once.
  actors::Outcome play_here(EventFd& bell, Context around, std::function<void()> asked = {});
  /// Asks the run to finish what is in flight, to save and to stop. The loop calls it.
  void drain();
  /// Kills the actors of a run that has not ended, and waits for them. The loop must have ended.
  void drop();
  /// Calls `then`, on any thread, once the devices here have finished their jobs. For processes in
  /// which players of another process' run play.
  void finish(std::function<void()> then);
  /// Returns the spec for the players after a change of live keys.
  actors::RunSpecPtr changed(const config::Loaded& loaded);

  /// Plans a configuration that differs only in its pipeline.
  Result<PreparedPlanPtr> stage(const config::RunConfig& config) const {
    return prepare_plan(config, setup_, whom_);
  }
  /// Uses this plan from the next spec on. Requires that all devices are in other processes.
  void restage(PreparedPlanPtr prepared_plan) { prepared_plan_ = std::move(prepared_plan); }

  std::int64_t step() const { return start_.step; }
  const RunSetup& setup() const { return setup_; }
  const schedules::Plan& plan() const { return prepared_plan_->plan; }
  const actors::Rounds& rounds() const { return prepared_plan_->rounds; }

 private:
  ProcessRun(const config::Loaded& loaded, RunSetup setup, storage::Files& files);
  /// Returns the recipe with the precision that "auto" became, so that a resumed run elsewhere
  /// computes in the same.
  Value recipe_of(Value tree) const;
  std::shared_ptr<actors::RunSpec> spec(const config::RunConfig& config, const Value& recipe);
  /// Returns a spec with functions for checkpoints and events.
  std::shared_ptr<actors::RunSpec> led(const config::RunConfig& config, const Value& recipe);
  void take_batches(const storage::LedgerTerms& terms);
  void keep_memory();
  void warn(const std::string& text);
  void await_actors(actors::Outcome outcome);
  void await_saves();
  void await_devices();
  void over(bool all_gone);

  const config::RunConfig& config_;
  const Value& tree_;
  Value recipe_;
  RunSetup setup_;
  PlanFor whom_;
  storage::Files& files_;
  Record record_;
  PreparedPlanPtr prepared_plan_;
  PreparedPlanPtr kept_;  // The plan whose memory file is in the run's folder.
  // Of the configuration, and of each change of its mixture. Players of earlier attempts may still
  // have earlier ones.
  std::list<storage::MicroBatches> batches_;
  std::string mix_;  // The mixture of the newest ones; empty: the data is no mixture.
  std::optional<storage::MicroBatches> validation_;
  MemoryPool host_;  // Memory for what is read before there are devices.
  actors::StartPoint start_;
  RunDevices devices_;
  bool is_used_ = false;                   // Whether a spec has its devices.
  std::atomic<bool> is_finished_ = false;  // Whether finish() has called back.
  std::optional<storage::Ledger> ledger_;
  std::optional<storage::EvaluationLog> evaluations_;
  std::unique_ptr<StepSamples> samples_;  // Null: the run writes none.
  std::unique_ptr<DiskCheckpoints> store_;
  actors::PlayerHost* player_host_ = nullptr;
  std::function<Result<actors::RunSpecPtr>(std::int64_t step)> leave_out_;
  Watchdog* watchdog_ = nullptr;

  // Used by the loop of a playing run.
  Loop* loop_ = nullptr;
  std::function<void(const caf::actor&)> led_by_;
  std::function<void(actors::Outcome)> ended_;
  caf::actor supervisor_;
  bool drains_ = false;
  std::optional<actors::Outcome> outcome_;
  std::optional<Loop::Timer> patience_;  // The timeout of the wait under way.

  std::unique_ptr<Loop> own_loop_;  // play_here() makes it; stuck threads may use it.

  // The actors of a playing run, which use the members above.
  std::shared_ptr<actors::caf_shim::ActorGroup> group_;
};

}  // namespace troupe::apps
