#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "apps/client/event_reader.h"
#include "apps/client/head_client.h"
#include "apps/client/scenario.h"
#include "core/result.h"
#include "core/threads/event_fd.h"

namespace troupe::apps {

/// What a scenario is played on.
struct Stage {
  HeadClient& client;
  EventFd& bell;         // Rings when something was told, and when a person wants it to end.
  std::string endpoint;  // Of the head, for commands.
  std::function<Status(const std::string& name)> start_node;
  std::function<void(const std::string&)> say;
};

/// Plays the acts of a scenario, one after another. Each looks at events from where the one before
/// has found its last.
class ScenarioPlayer {
 public:
  explicit ScenarioPlayer(Stage stage) : stage_(std::move(stage)) {}

  /// Before the first act: what is there already, and what was told of it, counts for nothing.
  Status begin();
  /// Waits until such an event has come.
  Status wait_for(const Pattern& pattern, std::chrono::nanoseconds within);
  /// The error says what was found and what was wanted.
  Status play(const Act& act, const std::string& folder);

 private:
  using Clock = std::chrono::steady_clock;

  Status look();
  Status pass(std::chrono::nanoseconds time);
  Status submit(const Act& act, const std::string& folder);
  Status send(const Value& message);
  Status run(const Act& act);
  Status compare(const std::vector<std::string>& runs) const;
  std::string last_weights(const std::string& run) const;
  Error not_found(const Pattern& pattern, std::size_t from, std::chrono::nanoseconds within) const;

  Stage stage_;
  std::map<std::string, EventReader> readers_;  // By run; "" is the head.
  std::vector<Value> told_;
  std::size_t at_ = 0;  // What was told before this was looked at.
};

}  // namespace troupe::apps
