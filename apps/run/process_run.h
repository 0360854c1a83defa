#pragma once

#include <caf/all.hpp>
#include <chrono>
#include <functional>
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
#include "config/recipe.h"
#include "core/threads/event_fd.h"
#include "schedules/plan/plan.h"

namespace troupe::apps {

/// A run as this process has it: all of its devices, as `troupe train` on one machine; some of
/// them, as a node; or none, as the head, which leads it.
class ProcessRun {
 public:
  using Record = std::function<void(const Value&)>;

  /// Plans the run. Checkpoints and the like are kept in `files`. Errors mean exit code 3. What was
  /// loaded outlives it.
  static Result<std::unique_ptr<ProcessRun>> make(const config::Loaded& loaded, RunSetup setup,
                                                  storage::Files& files, const PlanFor& whom = {},
                                                  const DevicesHere& here = {});
  ~ProcessRun();

  /// Weights as the configuration says: random, or from a file.
  Status start();
  /// From the newest checkpoint that verifies; from the beginning where no step was ever saved.
  /// Only checkpoints of the run of that id count. Gives what the user should be warned of.
  Result<std::vector<std::string>> resume(SavesGone saves_gone, const std::string& id);

  /// The configuration with all in it that was chosen here: by which all other processes of the run
  /// make the same plan.
  Value chosen() const { return chosen(tree_); }
  /// Likewise, of one in which live keys alone are others.
  Value chosen(Value tree) const;
  /// What the players here need, without a place for checkpoints and events.
  std::shared_ptr<actors::RunSpec> spec() { return spec(config_, recipe_); }

  /// By device those of them that have links; and why others that want some have none.
  std::vector<actors::LinkedDevice*> linked() const { return devices_.linked(); }
  const std::string& why_not_linked() const { return devices_.why_not_linked(); }
  /// Of devices that are here; play() makes warnings of them.
  Remarks& remarks() const { return devices_.remarks(); }

  /// What is around it while it plays.
  struct Context {
    EventFd& bell;       // A ring asks to finish what is in flight, save and stop.
    Watchdog& watchdog;  // Has its signs of life, from the first one until it is gone.
    Record record;       // From any thread.
    actors::PlayerHost* player_host = nullptr;  // Null: all players are here.
    /// Whose checkpoints it saves; null: nobody else can be saving there.
    const storage::RootClaim* claim = nullptr;
    /// Hears who leads it: no longer than until `play` returns.
    std::function<void(const caf::actor&)> led_by = {};
  };
  /// Plays to the end, once. Where not all of its outcome are gone, threads of it are stuck, and it
  /// cannot be destroyed: say how it ended, and leave().
  actors::Outcome play(const Context& around);
  /// While it plays: what its players are to be told once live keys are others.
  actors::RunSpecPtr changed(const config::Loaded& loaded) {
    return led(loaded.config, recipe_of(loaded.tree));
  }

  /// Of a configuration that differs in its pipeline alone.
  Result<PreparedPlanPtr> stage(const config::RunConfig& config) const {
    return prepare_plan(config, setup_, whom_);
  }
  /// From the next spec on; all devices are elsewhere.
  void restage(PreparedPlanPtr prepared_plan) { prepared_plan_ = std::move(prepared_plan); }

  std::int64_t step() const { return start_.step; }
  const RunSetup& setup() const { return setup_; }
  const schedules::Plan& plan() const { return prepared_plan_->plan; }
  const actors::Rounds& rounds() const { return prepared_plan_->rounds; }

 private:
  ProcessRun(const config::Loaded& loaded, RunSetup setup, storage::Files& files);
  /// With what "auto" came to: whoever resumes it elsewhere computes in the same.
  Value recipe_of(Value tree) const;
  std::shared_ptr<actors::RunSpec> spec(const config::RunConfig& config, const Value& recipe);
  /// With a place for checkpoints and events.
  std::shared_ptr<actors::RunSpec> led(const config::RunConfig& config, const Value& recipe);
  void keep_memory();
  void warn(const std::string& text);
  bool all_gone();

  const config::RunConfig& config_;
  const Value& tree_;
  Value recipe_;
  RunSetup setup_;
  PlanFor whom_;
  storage::Files& files_;
  Record record_;
  PreparedPlanPtr prepared_plan_;
  PreparedPlanPtr kept_;  // Whose memory the run's folder has.
  std::optional<storage::MicroBatches> batches_;
  std::optional<storage::MicroBatches> validation_;
  MemoryPool host_;  // Of what is read before there are devices.
  actors::StartPoint start_;
  RunDevices devices_;
  std::optional<storage::Ledger> ledger_;
  std::unique_ptr<DiskCheckpoints> store_;
  actors::PlayerHost* player_host_ = nullptr;
  Watchdog* watchdog_ = nullptr;
  actors::caf_shim::Config system_config_;
  std::unique_ptr<caf::actor_system> system_;
};

}  // namespace troupe::apps
