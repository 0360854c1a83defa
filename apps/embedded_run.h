#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "actors/rounds.h"
#include "actors/run_spec.h"
#include "apps/bell.h"
#include "apps/run_setup.h"
#include "schedules/plan.h"

namespace troupe::apps {

/// A run whose actors all live in this process: what `troupe train` does on one machine.
class EmbeddedRun {
 public:
  using Record = std::function<void(const Value&)>;

  /// Plans the run for this machine. Checkpoints and the like are kept in `files`. Errors mean exit
  /// code 3.
  static Result<std::unique_ptr<EmbeddedRun>> make(const config::Loaded& loaded, RunSetup setup,
                                                   storage::Files& files);
  ~EmbeddedRun();

  /// Weights as the configuration says: random, or from a file.
  Status start();
  /// From the newest checkpoint that verifies; from the beginning where there is none. Gives what
  /// the user should be warned of.
  Result<std::vector<std::string>> resume();

  /// Plays to the end, once. A ring of the bell asks to finish what is in flight, save and stop.
  /// Any thread may call `record`.
  actors::Outcome play(Bell& bell, Record record);

  std::int64_t step() const { return start_.step; }
  const RunSetup& setup() const { return setup_; }
  const schedules::Plan& plan() const { return plan_; }
  const actors::Rounds& rounds() const { return *rounds_; }

 private:
  EmbeddedRun(const config::Loaded& loaded, RunSetup setup, storage::Files& files);
  Status make_plan();
  Status check_ties() const;
  Status check(const actors::StartPoint& start, const std::string& where);
  actors::RunSpecPtr make_spec();
  void make_devices();
  void warn(const std::string& text);

  class Store;

  const config::RunConfig& config_;
  Value recipe_;
  RunSetup setup_;
  storage::Files& files_;
  Record record_;
  schedules::Plan plan_;
  std::optional<actors::Rounds> rounds_;
  std::optional<storage::MicroBatches> batches_;
  std::optional<storage::MicroBatches> validation_;
  MemoryPool host_;  // Of what is read before there are devices.
  actors::StartPoint start_;
  std::vector<std::unique_ptr<actors::Executor>> devices_;
  std::unique_ptr<actors::Executor> reader_;
  std::unique_ptr<Store> store_;
};

}  // namespace troupe::apps
