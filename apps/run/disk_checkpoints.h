#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <string>

#include "actors/run_spec.h"
#include "config/run_config.h"
#include "core/value.h"
#include "storage/checkpoint/checkpoint_writer.h"
#include "storage/checkpoint/ledger.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// The checkpoints of a run, below the directory that its configuration names: saved on a thread of
/// their own while training goes on.
class DiskCheckpoints final : public actors::CheckpointStore {
 public:
  /// What it needs, all of which outlives it.
  struct Context {
    const config::RunConfig& config;
    storage::Files& files;
    storage::Ledger& ledger;                          // Written down before what it accounts for.
    const std::function<void(const Value&)>& record;  // What is saved or is not; any thread.
    const storage::RootClaim* claim = nullptr;        // Null: nobody else can be saving there.
  };
  explicit DiskCheckpoints(const Context& around);

  void save(storage::CheckpointContent content, std::function<void(Status)> done) override;
  Result<std::optional<actors::StartPoint>> newest(MemoryPool& memory) override;

  /// Waits for what is being saved, for `limits.save_patience` at most.
  Status finish();

 private:
  void tell(const storage::SaveOutcome& outcome);
  void warn(const std::string& text) const;

  const Context around_;
  std::mutex mutex_;
  std::deque<std::function<void(Status)>> waiting_;
  storage::CheckpointWriter writer_;  // Last: its thread uses the others.
};

}  // namespace troupe::apps
