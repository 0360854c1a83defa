#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "actors/decide/run_machine.h"
#include "actors/decide/waiting_events.h"
#include "core/env.h"
#include "core/result.h"

namespace troupe::actors {

/// Runs a run's machine on a loop: it handles one event after another and writes each decision
/// down before it is carried out. If writing fails, the decision is discarded and the event waits;
/// only events of steps are answered meanwhile.
class RunDriver {
 public:
  using State = decide::State;

  /// The caller's functions; they run on the loop and must not block.
  struct Hooks {
    std::function<decide::Limits(const State&)> limits;
    /// Returns when all records are on disk; an error means that none is.
    std::function<Status(const std::vector<decide::Record>&)> write;
    /// Carries out all orders except timers. The answer's state is the one before.
    std::function<void(const decide::Answer&)> carry_out;
  };

  /// The caller ends the loop before it destroys the driver, and then no hook is called any
  /// more. The environment and the loop outlive the driver.
  RunDriver(Env& env, Loop& loop, Hooks hooks);
  RunDriver(const RunDriver&) = delete;
  RunDriver& operator=(const RunDriver&) = delete;

  /// Hears an event at once. For tasks of the loop: what they have read is still true then.
  void hear(decide::Event event);

  // Any thread may call the functions below. After the end of the loop, events and tasks are
  // dropped.
  void take(decide::Event event);
  /// Runs a function on the loop, after all earlier events.
  void post(std::function<void()> what) { after({}, std::move(what)); }
  void after(Duration time, std::function<void()> what);
  /// Returns the state after the last event.
  State state() const;
  /// Returns how many events wait. Only a task of the loop may call it.
  std::size_t waiting() const { return events_.size(); }
  /// Stops answering events and writes these last records before it returns.
  void rest(const std::vector<decide::Record>& last);

 private:
  void answer_all();
  Status answer(const decide::Event& event);
  void accept(decide::Answer answer);
  void set_timer(const decide::SetTimer& set);

  Env& env_;
  // It has no bound: nobody asks for more than one task for each node and timer, and steps wait for
  // the recorder.
  Loop& loop_;
  const Hooks hooks_;
  std::mutex writing_;  // Locked before `mutex_` if both are needed.
  bool rests_ = false;
  mutable std::mutex mutex_;
  State state_;  // Changed only by the loop.
  // Used by the loop.
  decide::WaitingEvents events_;
  bool is_held_up_ = false;           // An event could not be written down.
  std::optional<Loop::Timer> timer_;  // The machine has one at a time.
};

}  // namespace troupe::actors
