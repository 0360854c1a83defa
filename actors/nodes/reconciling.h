#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "actors/decide/reconciler.h"
#include "core/result.h"
#include "core/threads/worker.h"

namespace troupe::actors {

/// A reconciler at work, on a thread of its own: one event after the other, each decision written
/// down before it is carried out. Where that cannot be done it is as if it had not been made, and
/// the event waits.
class Reconciling {
 public:
  using State = reconciler::State;

  /// What others do for it, on its thread. They must not wait.
  struct Hands {
    std::function<reconciler::Limits(const State&)> limits;
    /// Returns when they are on the disk; an error means that none of them is.
    std::function<Status(const std::vector<reconciler::Record>&)> write;
    /// All but its timers; its state is the one after that.
    std::function<void(const reconciler::Answer&)> carry_out;
  };

  explicit Reconciling(Hands hands);
  ~Reconciling() { end(); }
  Reconciling(const Reconciling&) = delete;
  Reconciling& operator=(const Reconciling&) = delete;

  // Any thread.
  void take(reconciler::Event event);
  /// Something beside events, on its thread; behind all events that have come.
  void post(std::function<void()> what) { after({}, std::move(what)); }
  void after(Duration time, std::function<void()> what);
  /// As of the last event that was answered.
  State state() const;
  /// Answers nothing any more, and has written this down as the last: when it returns.
  void rest(const std::vector<reconciler::Record>& last);
  /// Lets be what waits, and all that is told it from now on; the hands are not asked any more when
  /// it returns. Not on its thread.
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  void answer_all();
  Status answer(const reconciler::Event& event);
  void accept(const reconciler::Answer& answer);

  const Hands hands_;
  std::mutex writing_;  // Before the other, where both are held.
  bool rests_ = false;
  mutable std::mutex mutex_;
  State state_;  // Changed by its thread alone.
  // Of its thread.
  std::deque<reconciler::Event> events_;
  bool is_held_up_ = false;  // By the first of them, which could not be written down.
  // It has no bound: nobody asks for more than one task for each node and timer.
  Worker worker_{"reconciling"};  // Last: its thread uses the others.
};

}  // namespace troupe::actors
