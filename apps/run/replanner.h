#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/decide/plan_switch.h"
#include "actors/decide/plan_times.h"
#include "actors/nodes/node_pool.h"
#include "apps/run/run_choice.h"
#include "config/load.h"
#include "core/env.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// Decides whether a run would finish sooner on other nodes or by another plan. It looks when nodes
/// have come, when lost nodes have not come back, after each save, and when steps or links turn out
/// to be other than expected. It runs on its own loop.
class Replanner {
 public:
  /// The nodes and the plan of a run, and the nodes that it could use.
  struct Standing {
    std::vector<actors::NodeHere> used;
    std::vector<actors::NodeHere> usable;
    RunChoice choice;     // The choice in force.
    config::Loaded open;  // The configuration as submitted, with all choices still open.
    std::vector<UnitTimes> times = {};  // See RunSetup::times.
  };
  /// Returns the present standing; nothing while the run does not play. It is called without a lock
  /// held.
  using Look = std::function<std::optional<Standing>()>;
  /// Arranges that take() is called at the run's next boundary change, and then over().
  using Begin = std::function<void()>;

  /// A lost node may return within `patience` before the run is planned without it.
  Replanner(Env& env, storage::Files& files, std::chrono::milliseconds patience, Look look,
            Begin begin);

  // These functions may be called on any thread.
  void node_came();
  void node_went();
  void saved();
  /// `computing`: the seconds in which the busiest device computed, if known.
  void stepped(std::int64_t step, std::int64_t steps, double seconds,
               std::optional<double> computing);
  /// Another attempt begins, on these nodes.
  void placed(const RunChoice& choice, const std::vector<actors::NodeHere>& nodes);

  /// Returns the choice to switch to, on the present nodes; nothing if a switch does not pay any
  /// more. Called at a boundary change.
  std::optional<RunChoice> take();
  void over(bool has_switched);
  /// Waits until it looks at nothing. It looks at nothing any more.
  void end() { loop_->end(); }

 private:
  using Basis = actors::PlanTimes::Basis;

  /// The best choice for a standing.
  struct Best {
    std::vector<std::uint64_t> used, usable;  // Incarnations, sorted.
    std::vector<std::string> names;           // The names of all usable nodes, sorted.
    RunChoice before, choice;
    double speed = 1;                         // The speed relative to the plan in force.
    std::vector<actors::MeasuredLink> links;  // Links of all usable nodes.
    double expected = 0;                      // Seconds of a step of the plan in force.
    bool has_figures = false;                 // The plan in force was measured.
    bool corrects = false;                    // The forecast of the plan in force was wrong.
    Basis basis = Basis::forecast;            // The grounds of the choice.

    bool is_of(const Standing& standing) const;
    bool has_links_of(const Standing& standing) const;
  };

  bool is_refuted(const Standing& standing) const;
  void watch();
  void look();
  void consider();
  Best best_for(const Standing& standing);
  void changed(bool has_come);
  /// Requires the lock.
  bool pays(const Standing& standing) const;

  Env& env_;
  storage::Files& files_;
  std::chrono::milliseconds patience_;
  Look look_;
  Begin begin_;
  std::mutex mutex_;
  std::optional<Best> best_;            // The best choice for the standing that was examined last.
  actors::decide::PlanSwitch outlook_;  // All but the other plan.
  actors::decide::NodeChanges changes_;
  actors::decide::SwitchLimits limits_;  // Includes the measured cost of a switch.
  actors::PlanTimes times_;
  std::optional<Env::Time> went_;   // When the last node was lost, if none has come since.
  std::optional<Env::Time> since_;  // When the switch under way began,
  bool has_switched_ = false;       // and whether its attempt has begun.
  bool looks_ = false;              // Whether a look waits on the loop.
  std::unique_ptr<Loop> loop_;      // Declared last: its tasks use the other members.
};

}  // namespace troupe::apps
