#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "core/env.h"

namespace troupe {

/// Tasks in the order in which they are due. It has no clock: callers pass the time. It is not
/// thread-safe.
class TaskQueue {
 public:
  using Task = Loop::Task;
  using Time = Env::Time;
  using Timer = Loop::Timer;

  /// Adds a task. Tasks that are due at the same time run in the order in which they were added.
  Timer add(Time due, Task task);
  /// Removes a task and returns it; an empty function if it does not wait any more.
  Task cancel(Timer timer);
  /// Removes and returns the first task, if it is due.
  std::optional<Task> take(Time now);

  /// Returns when the first task is due; nothing if none waits.
  std::optional<Time> next_due() const;
  std::size_t size() const { return tasks_.size(); }

 private:
  std::map<std::pair<Time, Timer>, Task> tasks_;
  std::map<Timer, Time> due_;
  std::uint64_t timers_ = 0;
};

}  // namespace troupe
