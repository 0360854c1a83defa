#pragma once

#include <caf/all.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/linked_device.h"
#include "actors/messages.h"
#include "actors/rounds.h"
#include "actors/rt.h"
#include "actors/run_spec.h"
#include "apps/bell.h"
#include "apps/plan_request.h"
#include "apps/run_setup.h"
#include "apps/watchdog.h"
#include "config/recipe.h"
#include "core/device_progress.h"
#include "schedules/holdings.h"
#include "schedules/plan.h"

namespace troupe::apps {

/// A run as this process has it: all of its devices, as `troupe train` on one machine; some of
/// them, as a node; or none, as the head, which leads it.
class ProcessRun {
 public:
  using Record = std::function<void(const Value&)>;

  /// Which devices are here, of all replicas one after another, and how many cores they share.
  struct Devices {
    std::function<bool(int device)> are_here = [](int) { return true; };
    std::optional<int> cores;  // Nothing: all that the configuration or the machine gives.
    const actors::Pace* pace = nullptr;        // Of their computing; outlives the run.
    MemoryOf memory = MemoryOf::this_machine;  // That the plan has to fit.
    bool others_play = false;                  // Other processes, which know schedules by name.
    bool want_links = false;                   // Of GPUs, with those of other processes.
  };

  /// Plans the run. Checkpoints and the like are kept in `files`. Errors mean exit code 3. What was
  /// loaded outlives it.
  static Result<std::unique_ptr<ProcessRun>> make(const config::Loaded& loaded, RunSetup setup,
                                                  storage::Files& files, Devices devices);
  static Result<std::unique_ptr<ProcessRun>> make(const config::Loaded& loaded, RunSetup setup,
                                                  storage::Files& files) {
    return make(loaded, std::move(setup), files, Devices());
  }
  ~ProcessRun();

  /// Weights as the configuration says: random, or from a file.
  Status start();
  /// From the newest checkpoint that verifies; from the beginning where there is none. Gives what
  /// the user should be warned of.
  Result<std::vector<std::string>> resume();

  /// The configuration with all in it that was chosen here: by which all other processes of the run
  /// make the same plan.
  Value chosen() const { return chosen(tree_); }
  /// Likewise, of one in which live keys alone are others.
  Value chosen(Value tree) const;
  /// What the players here need, without a place for checkpoints and events.
  std::shared_ptr<actors::RunSpec> spec() { return spec(config_, recipe_); }

  /// By device those of them that have links; and why others that want some have none.
  std::vector<actors::LinkedDevice*> linked() const;
  const std::string& why_not_linked() const { return why_not_linked_; }

  /// What is around it while it plays.
  struct Surroundings {
    Bell& bell;          // A ring asks to finish what is in flight, save and stop.
    Watchdog& watchdog;  // Has its signs of life, from the first one until it is gone.
    Record record;       // From any thread.
    actors::Casting* casting = nullptr;  // Null: all players are here.
    /// Hears who leads it: no longer than until `play` returns.
    std::function<void(const caf::actor&)> led_by = {};
  };
  /// Plays to the end, once. Where not all of its outcome are gone, threads of it are stuck, and it
  /// cannot be destroyed: say how it ended, and leave().
  actors::Outcome play(const Surroundings& around);
  /// While it plays: what its players are to be told once live keys are others.
  actors::RunSpecPtr changed(const config::Loaded& loaded) {
    return led(loaded.config, recipe_of(loaded.tree));
  }

  /// A plan, what is held by it, and what is played.
  struct Staging {
    schedules::Plan plan;
    schedules::RunMemory memory;
    actors::Rounds rounds;
  };
  using StagingPtr = std::shared_ptr<const Staging>;
  /// Of a configuration that differs in its pipeline alone.
  Result<StagingPtr> stage(const config::RunConfig& config) const;
  /// From the next spec on; all devices are elsewhere.
  void restage(StagingPtr staging) { staging_ = std::move(staging); }

  std::int64_t step() const { return start_.step; }
  const RunSetup& setup() const { return setup_; }
  const schedules::Plan& plan() const { return staging_->plan; }
  const actors::Rounds& rounds() const { return staging_->rounds; }

 private:
  ProcessRun(const config::Loaded& loaded, RunSetup setup, storage::Files& files);
  /// With what "auto" came to: whoever resumes it elsewhere computes in the same.
  Value recipe_of(Value tree) const;
  Status check(const actors::StartPoint& start, const std::string& where);
  Status make_devices(const Devices& devices);
  Status make_gpu(int turn, int gpus, const Devices& devices);
  std::shared_ptr<actors::RunSpec> spec(const config::RunConfig& config, const Value& recipe);
  /// With a place for checkpoints and events.
  std::shared_ptr<actors::RunSpec> led(const config::RunConfig& config, const Value& recipe);
  void keep_memory();
  void warn(const std::string& text);
  bool all_gone();
  std::vector<actors::Executor*> executors() const;

  class Store;

  const config::RunConfig& config_;
  const Value& tree_;
  Value recipe_;
  RunSetup setup_;
  MemoryOf memory_ = MemoryOf::this_machine;
  bool others_play_ = false;
  storage::Files& files_;
  Record record_;
  StagingPtr staging_;
  StagingPtr kept_;  // Whose memory the run's folder has.
  std::optional<storage::MicroBatches> batches_;
  std::optional<storage::MicroBatches> validation_;
  MemoryPool host_;  // Of what is read before there are devices.
  actors::StartPoint start_;
  std::shared_ptr<DeviceProgress> gpus_ = std::make_shared<DeviceProgress>();
  std::vector<std::unique_ptr<actors::Executor>> devices_;     // Null for those that are elsewhere.
  std::vector<std::unique_ptr<actors::LinkedDevice>> linked_;  // Likewise.
  std::string why_not_linked_;
  std::unique_ptr<actors::Executor> reader_;
  std::optional<storage::Ledger> ledger_;
  std::unique_ptr<Store> store_;
  actors::Casting* casting_ = nullptr;
  Watchdog* watchdog_ = nullptr;
  actors::rt::Config system_config_;
  std::unique_ptr<caf::actor_system> system_;
};

}  // namespace troupe::apps
