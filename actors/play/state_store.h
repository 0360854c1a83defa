#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "actors/executor.h"
#include "actors/kept_step.h"
#include "actors/messages.h"
#include "core/result.h"

namespace troupe::actors {

/// The state store of a process: optimizer states of a run in memory, its own and other processes',
/// that survive attempts. It has at most two states of each optimizer: the recovery point's, and
/// one that may become it. They are copies in its own memory, so their senders may end.
/// Thread-safe.
class StateStore {
 public:
  /// Receives the CPU time of the copy, or the reason why there is none.
  using Done = std::function<void(Result<std::chrono::nanoseconds>)>;

  /// Copies on `thread`, which it owns.
  explicit StateStore(std::shared_ptr<Executor> thread);
  ~StateStore();
  StateStore(const StateStore&) = delete;
  StateStore& operator=(const StateStore&) = delete;

  /// Returns at once. Calls `done` on the store's thread, or never if settle() comes first.
  void put(StateCopy copy, Done done);

  std::vector<KeptStep> kept() const;
  std::optional<Snapshot> find(int optimizer, std::int64_t step) const;

  /// Starts an attempt that continues after `step` steps: all other states are dropped.
  void begin(std::int64_t step);
  /// Drops all states of later steps than this one.
  void drop_after(std::int64_t step);
  /// Cancels pending copies. Calls `then` on the store's thread when no caller's tensor is
  /// referenced any more. The caller must hold the store until then.
  void settle(std::function<void()> then);

 private:
  void copy(const StateCopy& copy, const Done& done);

  mutable std::mutex mutex_;
  std::map<int, std::map<std::int64_t, Snapshot>> states_;  // Indexed by optimizer, then step.
  bool is_closed_ = false;                                  // Takes no more states.
  std::atomic<int> settled_ = 0;                            // Counts calls.
  std::shared_ptr<Executor> thread_;                        // Destroyed first: it uses the others.
};

}  // namespace troupe::actors
