#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/env.h"
#include "core/threads/task_queue.h"

namespace troupe {

/// A loop on a thread of its own. Work that it runs aside has a thread for each name, from the
/// first work on.
class Worker final : public Loop {
 public:
  /// The clock. A test that moves its own clock posts a task afterwards, so that the worker looks
  /// at the clock again.
  using Now = std::function<Env::Time()>;

  /// The thread gets the name of the loop.
  explicit Worker(LoopOptions options, Now now = std::chrono::steady_clock::now);
  ~Worker() override { stop(); }

  Posted post(Task task) override;
  std::optional<Timer> after(std::chrono::nanoseconds time, Task task) override;
  void cancel(Timer timer) override;
  Posted aside(const std::string& name, Task work, Task then) override;
  void end() override { stop(); }

 private:
  void stop();
  void close(std::vector<TaskQueue>& dropped);
  void run();
  /// Takes the outcome of work, however many tasks wait.
  void take_back(Task then);

  const LoopOptions options_;
  const Now now_;
  std::mutex mutex_;
  std::condition_variable changed_;
  TaskQueue waiting_;
  bool is_ending_ = false;
  std::map<std::string, std::unique_ptr<Worker>> asides_;  // Keyed by name; no new one at the end.
  std::thread thread_;  // Declared last: it uses the other members.
};

}  // namespace troupe
