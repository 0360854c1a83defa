#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/env.h"

namespace troupe::simulation {

/// Identifies a simulated process. A process that is started again is a new one.
enum class ProcessId : std::uint32_t {};
enum class QueueId : std::uint32_t {};
enum class SourceId : std::uint32_t {};

/// How a simulated process ended.
struct Ending {
  enum class How : std::uint8_t {
    ended,    // The process called Env::end_process().
    crashed,  // The process called Env::crash().
    killed,   // Scheduler::kill() ended it.
  };

  How how = How::killed;
  int code = 0;  // The code that end_process() got.
  std::string last_words;
};

/// Unwinds the stack of a process that ended. It is no std::exception, so that handlers of errors
/// do not catch it. The scheduler catches it.
struct ProcessEnded {
  ProcessId process;
};

/// Something besides queues that has things to run, such as an actor system.
class Source {
 public:
  using Time = Env::Time;

  virtual ~Source() = default;

  /// Returns how many things are ready, each of which could run next. The oldest is 0, and new ones
  /// are added at the end.
  virtual std::size_t ready() = 0;
  /// Runs one of them, which is then no longer ready. The others keep their order. It may make any
  /// thing ready again, at the end.
  virtual void run(std::size_t which) = 0;
  /// Returns a number that the thing keeps while the source exists: the same each time that it is
  /// ready.
  virtual std::uint64_t identity(std::size_t which) = 0;
  /// Returns the name of the thing; things may share one.
  virtual std::string name(std::size_t which) const = 0;
  /// The thing that runs now is not ready for this time, as if it waited for something slow.
  /// Further calls while it runs add their times.
  virtual void stall(std::uint64_t identity, std::chrono::nanoseconds time) = 0;
  /// Returns the time of the first timeout or end of a stall, if there is one.
  virtual std::optional<Time> next_timeout() = 0;
  /// Sets the clock of the source and makes ready whatever waited for a timeout, or was stalled, up
  /// to this time. Runs nothing.
  virtual void advance(Time now) = 0;
};

/// Everything that happens in a simulation, in one thread. Processes have queues of tasks and other
/// sources of things to run. The scheduler draws which of the things that are ready runs next. Time
/// moves only if nothing is ready. Equal seeds and equal calls give equal runs, on each machine.
///
/// Any function but run_until() may be called by a task.
class Scheduler {
 public:
  using Time = Env::Time;
  using Duration = std::chrono::nanoseconds;
  using Task = Loop::Task;
  using Timer = Loop::Timer;

  /// How the next thing is chosen among those that are ready.
  enum class Manner : std::uint8_t {
    evenly,         // Each is as likely as the others.
    by_priorities,  // The one with the highest priority. Priorities are drawn and change rarely, so
                    // that one thing may wait long for others (PCT, Burckhardt et al. 2010).
    in_order,       // The one that has been ready longest.
  };

  /// Returns the manner of a seed among many: half of them draw evenly, a quarter by priorities,
  /// and a quarter plays in order.
  static constexpr Manner manner_of(std::uint64_t seed) {
    constexpr std::array manners = {Manner::evenly, Manner::by_priorities, Manner::evenly,
                                    Manner::in_order};
    return manners[seed % manners.size()];
  }

  /// The extent of the history.
  enum class History : std::uint8_t {
    none,
    told,        // Only what trace() was told.
    everything,  // Each event too.
  };

  struct Options {
    std::uint64_t seed = 0;
    Manner manner = Manner::evenly;
    std::uint64_t most_events = 400'000;
    History history = History::none;
  };

  explicit Scheduler(const Options& options);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  /// Drops all tasks.
  ~Scheduler();

  /// The process of everything outside of processes: wires, faults, people. It never ends.
  static constexpr ProcessId world{0};
  /// The time at which every simulation begins.
  static constexpr Time start{std::chrono::seconds(1)};

  Time now() const { return now_; }
  /// Returns how many tasks and other things have run.
  std::uint64_t events() const { return events_; }
  /// Returns how often the code of processes passed each of its named points.
  const std::map<std::string, std::uint64_t>& points() const { return points_; }
  void pass_point(const std::string& name) {
    ++points_[name];
    if (has_history()) note(processes_[at(running_)].name, "passes " + name);
    if (point_passed_) point_passed_(running_, name);
  }
  /// Calls a function each time that the code of a process passes a named point, instead of the one
  /// before. It is called amid a task of that process.
  void watch_points(std::function<void(ProcessId process, const std::string& name)> passed) {
    point_passed_ = std::move(passed);
  }

  /// `on_end` runs once, when the process has ended and none of its code is on the stack. It may
  /// destroy the objects of the process.
  ProcessId add_process(std::string name, std::function<void(const Ending&)> on_end = {});
  const std::string& name(ProcessId process) const { return processes_[at(process)].name; }
  bool is_alive(ProcessId process) const { return processes_[at(process)].is_alive; }
  bool is_frozen(ProcessId process) const { return processes_[at(process)].is_frozen; }
  /// Returns the process whose code runs now. Outside of tasks this is `world`.
  ProcessId running() const { return running_; }
  /// Returns the queue whose task runs now, if one does.
  std::optional<QueueId> running_queue() const { return running_queue_; }

  /// Adds a queue. Its tasks run in the order in which they are due, one at a time.
  QueueId add_queue(ProcessId process, std::string name);
  /// Drops all tasks of a queue and rejects later ones. A task of it that runs now goes on.
  void remove(QueueId queue);
  ProcessId process_of(QueueId queue) const { return queues_[at(queue)].process; }
  /// Makes a task ready. Returns false if the queue was removed or its process has ended.
  bool post(QueueId queue, Task task);
  /// Makes a task ready once this time has passed: at once if it is not positive. Tasks that are
  /// due at the same time run in the order of the calls. Returns Timer{0}, which stands for no
  /// task, if the queue was removed or its process has ended.
  Timer after(QueueId queue, Duration time, Task task);
  /// Drops a task that has not begun, however long it has been due. Returns whether there was one.
  bool cancel(Timer timer);
  /// After the task that runs now, its queue runs nothing for this time, as if the task had waited
  /// for something slow. Further calls of the task add their times. The same holds for the thing of
  /// a source. Does nothing outside of both.
  void stall(Duration time);
  /// Stalls what runs next of a process, or what runs next of those with this name: a loop or an
  /// actor is stuck for a while.
  void stall_next(ProcessId process, Duration time, const std::string& name = {}) {
    next_stalls_[{process, name}] = time;
  }
  /// Returns how many tasks of a queue have not begun, due or not.
  std::size_t waiting(QueueId queue) const { return queues_[at(queue)].waiting; }
  /// Calls a function with each queue there ever was: its process, its name, and the most tasks
  /// that have waited in it at once.
  template <class See>
  void look_at_queues(See see) const {
    for (const auto& queue : queues_) see(queue.process, queue.name, queue.most_waiting);
  }

  /// `source` must outlive its registration. It is asked nothing more once its process has ended.
  SourceId add_source(ProcessId process, std::string name, Source& source);
  void remove(SourceId source);

  /// Nothing of a process is ready until it is thawed. Timers that fall due meanwhile are ready
  /// then.
  void freeze(ProcessId process);
  void thaw(ProcessId process);
  /// Calls a function each time that a process was frozen or thawed, instead of the one before.
  void watch_freezes(std::function<void()> changed) { freezes_changed_ = std::move(changed); }
  /// As for a process: a queue that is stuck.
  void freeze(QueueId queue);
  void thaw(QueueId queue);

  /// Ends a process from outside: nothing of it is ready any more, and its tasks are dropped. If
  /// one of its tasks runs now, that task goes on to its end.
  void kill(ProcessId process, Ending::How how = Ending::How::killed);
  /// Ends the process whose code runs now, and unwinds the stack up to the scheduler.
  [[noreturn]] void end(ProcessId process, Ending ending);

  /// Draws a number below a bound, which must not be 0. All draws of a simulation come from here.
  std::uint64_t draw(std::uint64_t below);
  /// Draws 64 bits.
  std::uint64_t draw_bits();
  /// Draws a time between two bounds, both included.
  Duration draw_time(Duration least, Duration most);

  /// Adds something that happened to the trace hash and the history: who did it, and what.
  void trace(std::string_view who, std::string_view what);
  /// Adds something to the history alone. Build texts for it only if there is a history.
  void note(std::string_view who, std::string_view what) {
    if (has_history()) write(who, what);
  }
  /// Adds a number to the trace hash alone.
  void trace(std::uint64_t number);
  /// Returns a hash of everything that has happened: what ran, when, what was drawn and traced.
  std::uint64_t trace_hash() const { return hash_; }
  bool has_history() const { return options_.history != History::none; }
  /// Returns a line for each thing that happened: the time since the start, who, and what.
  const std::vector<std::string>& history() const { return history_; }

  /// Why run_until() returned.
  enum class Stopped : std::uint8_t {
    done,  // The condition holds.
    idle,  // Nothing is ready and no timer is set.
    late,  // The next thing would happen after the latest time, at which time stands now.
    too_many_events,  // Options::most_events have run.
  };
  /// Runs until a condition holds, which is checked before each event. `latest` may be Time::max().
  Stopped run_until(const std::function<bool()>& condition, Time latest);
  /// Runs until nothing is left to do.
  Stopped run_all() {
    return run_until([] { return false; }, Time::max());
  }

 private:
  class Running;
  /// A task that is ready, with its number in the order of all things that became ready.
  struct Ready {
    std::uint64_t number = 0;
    Timer timer{};
    Task task;
  };
  struct Queue {
    ProcessId process{};
    std::string name;
    bool is_removed = false;
    bool is_frozen = false;
    bool is_listed = false;  // In ready_queues_.
    Time stalled_until{};
    std::size_t waiting = 0;  // Tasks that are ready and tasks with a timer.
    std::size_t most_waiting = 0;
    std::deque<Ready> ready;
  };
  struct Process {
    std::string name;
    std::function<void(const Ending&)> on_end;
    bool is_alive = true;
    bool is_frozen = false;
  };
  struct Listed {
    SourceId id{};
    ProcessId process{};
    std::string name;
    Source* source = nullptr;
    bool is_frozen = false;             // Its process is.
    std::deque<std::uint64_t> numbers;  // As Ready::number, one for each thing that is ready.
  };
  struct Waiting {
    QueueId queue{};
    Task task;
  };
  /// A thing that is ready: the first task of a queue, or one thing of a source.
  struct Thing {
    bool is_of_source = false;
    std::size_t at = 0;  // In ready_queues_ or sources_.
    std::size_t which = 0;
  };
  using Identity = std::pair<std::uint64_t, std::uint64_t>;

  template <class Id>
  static std::size_t at(Id id) {
    return static_cast<std::size_t>(id);
  }
  bool takes(const Queue& queue) const;
  static void count_in(Queue& queue);
  void relist(QueueId queue);
  void relist_all(ProcessId process);
  void set_frozen(ProcessId process, bool is_frozen);
  void drop_tasks(QueueId queue, std::vector<Task>& dropped);
  void finish(ProcessId process, Ending ending);
  void tell_endings();

  std::size_t count_ready();
  Thing thing(std::size_t index) const;
  Thing choose(std::size_t count);
  Thing highest();
  Thing oldest() const;
  Identity identity(const Thing& thing) const;
  std::uint64_t number(const Thing& thing) const;
  std::int64_t priority(const Identity& identity);
  void run(const Thing& thing);
  void run_queue(QueueId queue);
  void run_source(const Thing& thing, std::uint64_t identity);
  std::optional<Time> next_time() const;
  void move_time(Time time);
  void write(std::string_view who, std::string_view what);
  void begin_next_stall(const std::string& name);

  Options options_;
  Time now_ = start;
  std::map<std::string, std::uint64_t> points_;
  std::uint64_t events_ = 0;
  std::uint64_t draws_ = 0;
  std::uint64_t numbers_ = 0;
  std::uint64_t timers_ = 0;
  std::uint64_t hash_ = 0;
  std::vector<std::string> history_;

  ProcessId running_ = world;
  bool is_running_ = false;  // Within an event.
  std::optional<QueueId> running_queue_;
  std::optional<std::pair<Source*, std::uint64_t>>
      running_thing_;  // The thing of a source that runs.
  std::map<std::pair<ProcessId, std::string>, Duration> next_stalls_;  // An empty name: any.
  std::deque<Process> processes_;
  std::function<void()> freezes_changed_;
  std::function<void(ProcessId process, const std::string& name)> point_passed_;
  std::deque<Queue> queues_;
  std::vector<QueueId> ready_queues_;
  std::vector<Listed> sources_;
  std::uint32_t sources_made_ = 0;
  std::map<std::pair<Time, Timer>, Waiting> timers_by_time_;
  std::map<Timer, std::pair<Time, QueueId>> tasks_by_timer_;  // Also those that are ready.
  std::set<std::pair<Time, QueueId>> stalls_;
  std::vector<Task> dropped_;                          // Not destroyed yet.
  std::vector<std::pair<ProcessId, Ending>> endings_;  // Not told yet.

  std::map<Identity, std::int64_t> priorities_;
  std::int64_t lowest_ = 0;
  std::uint64_t between_changes_ = 0;  // Events between two changes of priorities, on average.
};

}  // namespace troupe::simulation
