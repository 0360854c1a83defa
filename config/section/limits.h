#pragma once

#include <chrono>

#include "config/fields.h"

namespace troupe::config::section {

/// Every wait.
struct Limits {
  std::chrono::nanoseconds silence_floor{};
  std::chrono::nanoseconds reconnect_patience{};
  std::chrono::nanoseconds stuck_floor{};
  std::chrono::nanoseconds start_patience{};
  std::chrono::nanoseconds gather_patience{};
  std::chrono::nanoseconds prepare_patience{};
  std::chrono::nanoseconds load_patience{};
  std::chrono::nanoseconds head_patience{};
  std::chrono::nanoseconds suspend_patience{};
  std::chrono::nanoseconds save_patience{};
  int futile_epochs = 5;
  int strikes = 3;
  std::chrono::nanoseconds strike_window{};

  static Fields<Limits> fields() {
    const auto wait = [](std::chrono::nanoseconds Limits::*member, const char* name,
                         const char* fallback, std::string_view help) {
      return field(member, {.name = name,
                            .type = Type::duration,
                            .fallback = fallback,
                            .least = 1e6,
                            .most = 3.2e18,
                            .help = help});
    };
    return {
        wait(&Limits::silence_floor, "limits.silence_floor", "300ms",
             "A pause between a node's heartbeats that never counts as silence. A head takes the "
             "longest of its runs that are under way."),
        wait(&Limits::reconnect_patience, "limits.reconnect_patience", "1s",
             "For a node whose connection closed without a word. A head takes the longest of its "
             "runs that are under way."),
        wait(&Limits::stuck_floor, "limits.stuck_floor", "2s",
             "A time for which no action counts as stuck."),
        wait(&Limits::start_patience, "limits.start_patience", "30s",
             "For the first nodes to come."),
        wait(&Limits::gather_patience, "limits.gather_patience", "5s",
             "For nodes to come back: after the head started again, and before a run is planned "
             "anew for those that are left."),
        wait(&Limits::prepare_patience, "limits.prepare_patience", "10s",
             "For a node to make ready for a new plan."),
        wait(&Limits::load_patience, "limits.load_patience", "10m",
             "For the nodes of a new plan to have the weights."),
        wait(&Limits::head_patience, "limits.head_patience", "10m",
             "For a head that is gone, while nodes train on, or a supervisor that is stuck."),
        wait(&Limits::suspend_patience, "limits.suspend_patience", "24h",
             "For nodes, when fewer are there than elastic.nodes asks for."),
        wait(&Limits::save_patience, "limits.save_patience", "60s",
             "For a checkpoint to reach the disk."),
        field(&Limits::futile_epochs,
              {.name = "limits.futile_epochs",
               .fallback = 5,
               .least = 1,
               .most = 1e6,
               .help = "Attempts in a row without a new step, after which each next one waits "
                       "longer. After limits.strikes more of them the run ends."}),
        field(&Limits::strikes,
              {.name = "limits.strikes",
               .fallback = 3,
               .least = 1,
               .most = 1e6,
               .help =
                   "Failures within strike_window that a run survives, but for those of nodes it "
                   "can do without. A node on which more processes end gets no part for a while."}),
        wait(&Limits::strike_window, "limits.strike_window", "10m",
             "The time in which failures are counted."),
    };
  }
};

}  // namespace troupe::config::section
