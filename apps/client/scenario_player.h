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

/// The cluster and the callbacks that a scenario is played with.
struct Stage {
  HeadClient& client;
  EventFd& bell;         // Rings on news, and when a person stops the scenario.
  std::string endpoint;  // The head's address, for commands.
  std::function<Status(const std::string& name)> start_node;
  std::function<void(const std::string&)> say;
};

/// Plays the acts of a scenario in order. Each act searches the events after the last one that the
/// previous act matched.
class ScenarioPlayer {
 public:
  explicit ScenarioPlayer(Stage stage) : stage_(std::move(stage)) {}

  /// Skips all events from before the first act.
  Status begin();
  /// Waits until an event matches `pattern`.
  Status wait_for(const Pattern& pattern, std::chrono::nanoseconds within);
  /// Plays one act. The error says what was found and what was expected.
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
  std::map<std::string, EventReader> readers_;  // A reader by run; "" is the head.
  std::vector<Value> told_;
  std::size_t at_ = 0;  // The index in `told_` of the first event that was not examined yet.
};

}  // namespace troupe::apps
