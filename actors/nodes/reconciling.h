#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "actors/decide/reconciler.h"
#include "core/result.h"
#include "core/threads/worker.h"

namespace troupe::actors {

/// Runs a reconciler on its own thread: it handles one event after another and writes each decision
/// down before it is carried out. If writing fails, the decision is discarded and the event waits.
class Reconciling {
 public:
  using State = reconciler::State;

  /// The caller's functions; they run on the reconciler's thread and must not block.
  struct Hooks {
    std::function<reconciler::Limits(const State&)> limits;
    /// Returns when all records are on disk; an error means that none is.
    std::function<Status(const std::vector<reconciler::Record>&)> write;
    /// Carries out all orders except timers. The answer's state is the one afterwards.
    std::function<void(const reconciler::Answer&)> carry_out;
  };

  explicit Reconciling(Hooks hands);
  ~Reconciling() { end(); }
  Reconciling(const Reconciling&) = delete;
  Reconciling& operator=(const Reconciling&) = delete;

  // Any thread may call the functions below.
  void take(reconciler::Event event);
  /// Runs a function on the reconciler's thread, after all earlier events.
  void post(std::function<void()> what) { after({}, std::move(what)); }
  void after(Duration time, std::function<void()> what);
  /// Returns the state after the last event.
  State state() const;
  /// Stops answering events and writes these last records before it returns.
  void rest(const std::vector<reconciler::Record>& last);
  /// Drops all waiting and future events. When it returns, no function of `Hands` is called any
  /// more. Do not call it on the reconciler's thread.
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  void answer_all();
  Status answer(const reconciler::Event& event);
  void accept(const reconciler::Answer& answer);

  const Hooks hooks_;
  std::mutex writing_;  // Locked before `mutex_` if both are needed.
  bool rests_ = false;
  mutable std::mutex mutex_;
  State state_;  // Changed only by its thread.
  // Used by its thread.
  std::deque<reconciler::Event> events_;
  bool is_held_up_ = false;  // The first event could not be written down.
  // It has no bound: nobody asks for more than one task for each node and timer.
  Worker worker_{{"reconciling"}};  // Declared last: its thread uses the other members.
};

}  // namespace troupe::actors
