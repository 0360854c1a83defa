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
#include "actors/messages.h"
#include "actors/play/lines.h"
#include "core/result.h"

namespace troupe::actors {

/// What a process has in its memory of a run, from one attempt to the next: states of optimizers,
/// its own and those of other processes. Of each optimizer there are two at most: that of the line,
/// and one that may become it. They lie in memory of their own, so that those who gave them may go.
/// Any thread.
class Keep {
 public:
  /// How long it has computed to copy it; or why there is no copy.
  using Done = std::function<void(Result<std::chrono::nanoseconds>)>;

  /// Copies on this thread, which is its own.
  explicit Keep(std::shared_ptr<Executor> thread);
  ~Keep();
  Keep(const Keep&) = delete;
  Keep& operator=(const Keep&) = delete;

  /// Returns at once. `done` is called on the keep's thread, or never, where it is settled before.
  void put(StateCopy copy, Done done);

  std::vector<KeptStep> kept() const;
  std::optional<Snapshot> find(int optimizer, std::int64_t step) const;

  /// An attempt goes on after so many steps: all other states are let go.
  void begin(std::int64_t step);
  /// What has not been copied yet is not to be. Returns once nothing of others is held. Not where
  /// the executor waits for its caller.
  void settle();

 private:
  void copy(const StateCopy& copy, const Done& done);

  mutable std::mutex mutex_;
  std::map<int, std::map<std::int64_t, Snapshot>> states_;  // By optimizer, then step.
  std::atomic<int> settled_ = 0;                            // Times.
  std::shared_ptr<Executor> thread_;                        // Goes first: it uses the others.
};

}  // namespace troupe::actors
