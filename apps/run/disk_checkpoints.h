#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "actors/run_spec.h"
#include "apps/samples/step_samples.h"
#include "config/run_config.h"
#include "core/env.h"
#include "core/value.h"
#include "storage/checkpoint/checkpoint_writer.h"
#include "storage/checkpoint/ledger.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// The checkpoints of a run, in the directory that its configuration names. A thread of their own
/// writes them while training continues.
class DiskCheckpoints final : public actors::CheckpointStore {
 public:
  /// The objects that a store needs. All of them outlive it.
  struct Context {
    Env& env;
    const config::RunConfig& config;
    storage::Files& files;
    storage::Ledger& ledger;              // Written before a checkpoint that depends on it,
    storage::EvaluationLog& evaluations;  // and so are these.
    // Receives an event for each save and each failure; any thread.
    const std::function<void(const Value&)>& record;
    const storage::RootClaim* claim = nullptr;  // Null: no other process can be saving there.
    StepSamples* samples = nullptr;             // Hears of each save. Null: no samples.
  };
  explicit DiskCheckpoints(const Context& around);

  void save(storage::CheckpointContent content, std::function<void(Status)> done) override;
  Result<actors::StartPoint> load(std::int64_t step, MemoryPool& memory) override;
  std::vector<std::int64_t> steps() override;

  /// Calls `then`, on any thread, once no save and no sample is pending.
  void when_idle(std::function<void()> then);

 private:
  void tell(const storage::SaveOutcome& outcome);
  void warn(const std::string& text) const;

  const Context around_;
  std::mutex mutex_;
  /// A save that is under way.
  struct Waiting {
    std::function<void(Status)> done;
    Env::Time began;
  };
  std::deque<Waiting> waiting_;
  storage::CheckpointWriter writer_;  // Last: its thread uses the members above.
};

}  // namespace troupe::apps
