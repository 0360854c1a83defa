#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>

#include "core/threads/worker.h"
#include "storage/checkpoint/checkpoint.h"

namespace troupe::storage {

/// How a save in the background ended.
struct SaveOutcome {
  std::int64_t step = 0;
  Result<Saved> saved = Error{};
  Result<Pruned> pruned = Error{};  // Asked for only after a save that went well.
};

struct SaveOptions {
  std::string root;
  int keep = 1;
  /// Makes durable what must be on the disk before a checkpoint is: where it fails, so does the
  /// save. On the writer's thread; may be empty.
  std::function<Status()> before = {};
  /// Whose checkpoints they are; null: nobody else can be saving there. Outlives the writer.
  const RootClaim* claim = nullptr;
};

/// Saves checkpoints on a thread of its own while training goes on. One is being written and one
/// may wait; a third is refused, so that neither memory nor the disk's queue grows, and nothing
/// that was accepted is ever dropped for something newer.
class CheckpointWriter {
 public:
  /// `done` is called on the writer's thread, once for every checkpoint that was accepted, in
  /// order. `files` must outlive the writer.
  CheckpointWriter(Files& files, SaveOptions options, std::function<void(const SaveOutcome&)> done);
  /// Finishes what was accepted.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Returns at once. Refuses where one is being written and one waits already; the caller says so
  /// and tries again with a later step.
  Status submit(CheckpointContent content);

  /// Waits until nothing is left to write, no longer than `patience`.
  Status wait_until_idle(std::chrono::milliseconds patience);

 private:
  void write_next();

  Files& files_;
  SaveOptions options_;
  std::function<void(const SaveOutcome&)> done_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<CheckpointContent> accepted_;  // The first is being written.
  Worker worker_{"checkpoints"};            // Last: its thread uses the others.
};

}  // namespace troupe::storage
