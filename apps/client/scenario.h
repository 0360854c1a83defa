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

/// Which events are meant: those whose fields are as it says. A field is compared with what stands
/// there, or as a text says that begins with a comparison: ">= 45", "< 2.5", "!= done", "~ newest",
/// which asks whether the text is part of it.
class Pattern {
 public:
  /// `fields` is a table.
  explicit Pattern(Value fields) : fields_(std::move(fields)) {}

  bool matches(const Value& event) const;
  /// "node.lost with node = alpha"
  std::string text() const;
  /// The type that it asks for; empty where any will do.
  std::string type() const;

 private:
  Value fields_;
};

/// What happens at one moment of a scenario, in this order. Each wait is bounded by `within`.
struct Act {
  int line = 0;
  std::chrono::nanoseconds after{};       // First so much time passes.
  std::optional<Pattern> when;            // Then such an event comes.
  std::vector<std::string> start;         // Nodes of the scenario's own cluster.
  std::string submit;                     // A configuration, relative to the scenario;
  std::vector<std::string> set;           // with settings,
  bool resume = false;                    // or where it was left.
  Value send;                             // A message: its type, and else its body.
  std::vector<std::string> command;       // Of this program, against the same head,
  int exit_code = 0;                      // which ends so.
  std::vector<Pattern> expect;            // Such events come, in any order.
  std::vector<std::string> same_weights;  // Two runs whose last checkpoints have the same weights.
  std::chrono::nanoseconds within = std::chrono::seconds(60);
};

/// A script of messages, with what shall come of them.
struct Scenario {
  std::string path;
  int nodes = 0;  // Of a cluster of its own on this machine; 0: there is one already.
  std::vector<Act> acts;
};

/// The error names the place and the key.
Result<Scenario> parse_scenario(std::string path, const std::string& text);

}  // namespace troupe::apps
