#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "core/env.h"
#include "storage/checkpoint/checkpoint.h"

namespace troupe::storage {

/// The outcome of a save in the background.
struct SaveOutcome {
  std::int64_t step = 0;
  Result<Saved> saved = Error{};
  Result<Pruned> pruned = Error{};  // Set only after a successful save.
};

struct SaveOptions {
  std::string root;
  KeepCount keep;
  /// Runs on the writer's loop before each save, to make other data durable first. If it fails,
  /// the save fails. May be empty.
  std::function<Status()> before = {};
  /// The claim to save under; must outlive the writer. Null: nobody else can be saving there.
  const RootClaim* claim = nullptr;
};

/// A writer that saves checkpoints on its own loop while training continues. At most one is being
/// written and one waits. A third is refused, so that neither memory nor the disk's queue grows. An
/// accepted checkpoint is never dropped for a newer one.
class CheckpointWriter {
 public:
  /// The writer's loop calls `done` once for each accepted checkpoint, in order. The environment
  /// and `files` must outlive the writer.
  CheckpointWriter(Env& env, Files& files, SaveOptions options,
                   std::function<void(const SaveOutcome&)> done);
  /// Finishes the checkpoint that is being written, and drops the one that waits.
  ~CheckpointWriter() = default;
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Accepts a checkpoint and returns at once. Returns an error if one is being written and one
  /// waits; the caller reports that and tries again at a later step.
  Status submit(CheckpointContent content);

  /// Calls `then` on the writer's loop once all checkpoints that were accepted before are written.
  void when_idle(std::function<void()> then);

 private:
  void write_next();

  Files& files_;
  SaveOptions options_;
  std::function<void(const SaveOutcome&)> done_;

  std::mutex mutex_;
  std::deque<CheckpointContent> accepted_;  // The first one is being written.
  std::unique_ptr<Loop> loop_;              // Declared last: its tasks use the other members.
};

}  // namespace troupe::storage
