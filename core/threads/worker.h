#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/threads/task_queue.h"

namespace troupe {

/// A thread that runs tasks one at a time, in the order in which they are due. A task may post
/// more tasks, and must not throw. Any thread may call the functions; end() and the destructor must
/// not be called on the worker's own thread, nor by two threads at once.
class Worker {
 public:
  using Task = TaskQueue::Task;
  using Timer = TaskQueue::Timer;
  using Time = TaskQueue::Time;
  enum class Posted { yes, full, ended };

  struct Options {
    std::size_t most_waiting = std::numeric_limits<std::size_t>::max();
    /// The clock. A test that moves its own clock posts a task afterwards, so that the worker looks
    /// at the clock again.
    std::function<Time()> now = std::chrono::steady_clock::now;
  };

  /// `name` becomes the name of the thread: at most 15 characters.
  explicit Worker(std::string name) : Worker(std::move(name), Options()) {}
  Worker(std::string name, Options options);
  ~Worker() { end(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Runs a task after all tasks that are due now.
  Posted post(Task task);
  /// Runs a task once this time has passed. Returns nothing if too many tasks wait, or after end().
  std::optional<Timer> after(std::chrono::nanoseconds time, Task task);
  /// Drops a task that waits. Does nothing if the task has begun already.
  void cancel(Timer timer);
  /// Waits for the running task, drops all waiting tasks, and rejects later ones.
  void end();

 private:
  void run(const std::string& name);

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  TaskQueue waiting_;
  bool is_ending_ = false;
  std::thread thread_;  // Declared last: it uses the other members.
};

}  // namespace troupe
