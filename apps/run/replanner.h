#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "actors/decide/reconciler.h"
#include "actors/nodes/node_pool.h"
#include "apps/run/run_choice.h"
#include "config/load.h"
#include "core/threads/worker.h"

namespace troupe::apps {

/// Whether a run would be done sooner on other nodes than those that it has, or by another plan.
/// That is looked at when nodes have come, when those who went have not come back, and after each
/// save, on a thread of its own.
class Replanner {
 public:
  /// What a run has, and what it could have.
  struct Standing {
    std::vector<actors::NodeHere> used;
    std::vector<actors::NodeHere> usable;
    RunChoice choice;     // In force.
    config::Loaded open;  // As it was asked for: nothing of its plan is chosen.
  };
  /// Nothing while the run does not play. Not called with a lock held.
  using Look = std::function<std::optional<Standing>()>;
  /// Has take() called at the run's next boundary, and then over().
  using Begin = std::function<void()>;

  /// Who has gone may come back so soon.
  Replanner(std::chrono::milliseconds patience, Look look, Begin begin);

  // Any thread.
  void node_came();
  void node_went();
  void saved();
  void stepped(std::int64_t step, std::int64_t steps, double seconds);

  /// At a boundary: the plan to go on with, on the nodes that are there; nothing where that does
  /// not pay any more.
  std::optional<RunChoice> take();
  void over(bool has_switched);

 private:
  using Clock = std::chrono::steady_clock;

  /// What is best for a standing.
  struct Best {
    std::vector<std::uint64_t> used, usable;  // Incarnations, in order.
    RunChoice before, choice;
    double speed = 1;  // Of the plan in force.

    bool is_of(const Standing& standing) const;
  };

  void watch();
  void look();
  void consider();
  static Best best_for(const Standing& standing);
  void changed(bool has_come);
  /// With the lock held.
  bool pays(const Standing& standing) const;

  std::chrono::milliseconds patience_;
  Look look_;
  Begin begin_;
  std::mutex mutex_;
  std::optional<Best> best_;                // Of the standing that was looked at last.
  actors::reconciler::State outlook_;       // What is known of its progress and of its nodes.
  actors::reconciler::Limits limits_;       // With what a switch has cost.
  std::optional<Clock::time_point> went_;   // The last one, where none has come since.
  std::optional<Clock::time_point> since_;  // A switch is under way.
  bool looks_ = false;                      // A look waits for the worker.
  Worker worker_{"switching"};              // Last: its thread uses the others.
};

}  // namespace troupe::apps
