#pragma once

#include <chrono>

#include "config/schema/fields.h"

namespace troupe::config::section {

/// Timeouts and failure limits.
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
             "Lower bound for the heartbeat timeout of a node. A head uses the longest value among "
             "its active runs."),
        wait(&Limits::reconnect_patience, "limits.reconnect_patience", "1s",
             "How long the head waits for a node to reconnect after its connection closed without "
             "notice. A head uses the longest value among its active runs."),
        wait(&Limits::stuck_floor, "limits.stuck_floor", "2s",
             "Lower bound for the timeout after which an action counts as stuck."),
        wait(&Limits::start_patience, "limits.start_patience", "30s",
             "How long a new run waits for its first nodes."),
        wait(
            &Limits::gather_patience, "limits.gather_patience", "5s",
            "How long a run waits for nodes to come back, after a restart of the head and before a "
            "new plan without the missing nodes."),
        wait(&Limits::prepare_patience, "limits.prepare_patience", "10s",
             "How long a node may take to prepare a new plan."),
        wait(&Limits::load_patience, "limits.load_patience", "10m",
             "How long the nodes of a new plan may take to load the weights."),
        wait(&Limits::head_patience, "limits.head_patience", "10m",
             "How long nodes train on without a head, or wait for a stuck supervisor."),
        wait(&Limits::suspend_patience, "limits.suspend_patience", "24h",
             "How long a run waits for nodes if fewer are connected than elastic.nodes requires."),
        wait(&Limits::save_patience, "limits.save_patience", "60s",
             "How long saving a checkpoint may take."),
        field(&Limits::futile_epochs,
              {.name = "limits.futile_epochs",
               .fallback = 5,
               .least = 1,
               .most = 1e6,
               .help = "Consecutive attempts without a completed step before each further attempt "
                       "waits longer. After limits.strikes more attempts the run fails."}),
        field(&Limits::strikes,
              {.name = "limits.strikes",
               .fallback = 3,
               .least = 1,
               .most = 1e6,
               .help = "Failures within strike_window that a run tolerates, not counting lost "
                       "nodes that it can replace. A node with more process failures than this "
                       "gets no work for a while."}),
        wait(&Limits::strike_window, "limits.strike_window", "10m",
             "Time window in which failures are counted."),
    };
  }
};

}  // namespace troupe::config::section
