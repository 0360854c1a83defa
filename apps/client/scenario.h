#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/value.h"

namespace troupe::apps {

/// A condition on events. Each field of the pattern must equal the event's field, or satisfy the
/// comparison that its text begins with: ">= 45", "< 2.5", "!= done", or "~ newest", which tests
/// whether the field contains the text.
class Pattern {
 public:
  /// `fields` is a table.
  explicit Pattern(Value fields) : fields_(std::move(fields)) {}

  bool matches(const Value& event) const;
  /// Returns a description: "node.lost with node = alpha".
  std::string text() const;
  /// Returns the event type that the pattern requires; empty if it accepts any type.
  std::string type() const;

 private:
  Value fields_;
};

/// The actions at one moment of a scenario, performed in the order of these members. Each wait is
/// bounded by `within`.
struct Act {
  int line = 0;
  std::chrono::nanoseconds after{};  // Wait this long first.
  std::optional<Pattern> when;       // Then wait for this event.
  std::vector<std::string> start;    // Start these nodes of the scenario's own cluster.
  std::string submit;            // Submit this configuration; the path is relative to the scenario.
  std::vector<std::string> set;  // Settings for the submission.
  bool resume = false;           // Resume the run from its last checkpoint.
  Value send;                    // Send this message: `type` and the fields of its body.
  std::vector<std::string> command;       // Run this program's command against the same head.
  int exit_code = 0;                      // The exit code that the command must have.
  std::vector<Pattern> expect;            // Events that must come, in any order.
  std::vector<std::string> same_weights;  // Runs whose last checkpoints must have equal weights.
  std::chrono::nanoseconds within = std::chrono::seconds(60);
};

/// A script of messages and the events that must follow from them.
struct Scenario {
  std::string path;
  int nodes = 0;  // The number of nodes to start on this machine; 0 uses an existing cluster.
  std::vector<Act> acts;
};

/// Parses a scenario. The error names the place and the key.
Result<Scenario> parse_scenario(std::string path, const std::string& text);

}  // namespace troupe::apps
