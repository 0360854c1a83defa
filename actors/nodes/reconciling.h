#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "actors/decide/reconciler.h"
#include "core/env.h"
#include "core/result.h"

namespace troupe::actors {

/// Runs a reconciler on a loop: it handles one event after another and writes each decision
/// down before it is carried out. If writing fails, the decision is discarded and the event waits.
class Reconciling {
 public:
  using State = reconciler::State;

  /// The caller's functions; they run on the loop and must not block.
  struct Hooks {
    std::function<reconciler::Limits(const State&)> limits;
    /// Returns when all records are on disk; an error means that none is.
    std::function<Status(const std::vector<reconciler::Record>&)> write;
    /// Carries out all orders except timers. The answer's state is the one before.
    std::function<void(const reconciler::Answer&)> carry_out;
  };

  /// The caller ends the loop before it destroys the reconciler, and then no hook is called any
  /// more. The environment and the loop outlive the reconciler.
  Reconciling(Env& env, Loop& loop, Hooks hooks);
  Reconciling(const Reconciling&) = delete;
  Reconciling& operator=(const Reconciling&) = delete;

  // Any thread may call the functions below. After the end of the loop, events and tasks are
  // dropped.
  void take(reconciler::Event event);
  /// Runs a function on the loop, after all earlier events.
  void post(std::function<void()> what) { after({}, std::move(what)); }
  void after(Duration time, std::function<void()> what);
  /// Returns the state after the last event.
  State state() const;
  /// Stops answering events and writes these last records before it returns.
  void rest(const std::vector<reconciler::Record>& last);

 private:
  void answer_all();
  Status answer(const reconciler::Event& event);
  void accept(reconciler::Answer answer);

  Env& env_;
  // It has no bound: nobody asks for more than one task for each node and timer.
  Loop& loop_;
  const Hooks hooks_;
  std::mutex writing_;  // Locked before `mutex_` if both are needed.
  bool rests_ = false;
  mutable std::mutex mutex_;
  State state_;  // Changed only by the loop.
  // Used by the loop.
  std::deque<reconciler::Event> events_;
  bool is_held_up_ = false;  // The first event could not be written down.
};

}  // namespace troupe::actors
