#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

namespace troupe {

/// Runs tasks one at a time, in the order in which they are due. Tasks must not throw. Any thread
/// may call the functions. end() and the destructor must not be called by a task or work of the
/// loop, nor by two threads at once.
class Loop {
 public:
  using Task = std::function<void()>;
  /// Identifies a waiting task.
  enum class Timer : std::uint64_t {};
  enum class Posted { yes, full, ended };

  Loop() = default;
  /// Implementations end the loop as end() does.
  virtual ~Loop() = default;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Runs a task after all tasks that are due now.
  virtual Posted post(Task task) = 0;
  /// Runs a task once this time has passed. Returns nothing if too many tasks wait, or after end().
  virtual std::optional<Timer> after(std::chrono::nanoseconds time, Task task) = 0;
  /// Drops a task that waits. Does nothing if the task has begun already.
  virtual void cancel(Timer timer) = 0;
  /// Runs `work` outside the loop, and then `then` as a task of the loop. For work that computes or
  /// waits long. Works of one name run one at a time, in the order of the calls, and so do their
  /// `then`s. The bound of waiting tasks holds for the works of each name, not for the `then`s.
  virtual Posted aside(const std::string& name, Task work, Task then) = 0;
  /// Waits until no task and no work runs, drops all that wait, and rejects later ones.
  virtual void end() = 0;
};

struct LoopOptions {
  std::string name;  // At most 15 characters.
  std::size_t most_waiting = std::numeric_limits<std::size_t>::max();
};

/// The clock, loops, random numbers and end of one process. The main function makes the real one
/// (core/threads/real_env.h) and hands it down. A simulator gives each simulated process another.
/// Any thread may call the functions. It outlives all loops that it made.
class Env {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using WallTime = std::chrono::sys_time<std::chrono::nanoseconds>;

  Env() = default;
  virtual ~Env() = default;
  Env(const Env&) = delete;
  Env& operator=(const Env&) = delete;

  /// Returns the time of a clock that never moves back. Timers of loops use it.
  virtual Time now() = 0;
  /// Returns the calendar time, which people may change.
  virtual WallTime wall_time() = 0;
  /// Returns 64 random bits that nobody else can guess.
  virtual std::uint64_t random() = 0;

  virtual std::unique_ptr<Loop> make_loop(LoopOptions options) = 0;

  /// Ends the process at once: ends no loop and runs no destructor. The last words go to stderr
  /// first.
  [[noreturn]] virtual void end_process(int code, const std::string& last_words) = 0;
  /// Ends the process at once, by SIGABRT, so that its supervisor restarts it.
  [[noreturn]] virtual void crash(const std::string& last_words) = 0;

  /// Marks a moment at which a simulator may kill or delay the process. Does nothing otherwise.
  virtual void point(const char* /*name*/) {}
};

}  // namespace troupe
