#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "transport/wire/fields.h"

namespace troupe::actors::reconciler {

/// One life of a node's process: a random number that is never reused.
using Life = std::int64_t;

/// A decision that a head writes down before it acts, so that a later head knows it.
struct Record {
  enum class Kind : std::uint8_t {
    term,     // A head begins.
    epoch,    // A plan was chosen; no node knows it yet.
    active,   // The plan is active, starting after `step`.
    aborted,  // The plan will never be active.
    dead,     // A node was declared dead.
    strike,   // A strike against a node's name.
    saved,    // A checkpoint is complete.
    ended,    // The run has ended.
  };

  Kind kind = Kind::term;
  std::uint64_t term = 0;
  std::uint64_t epoch = 0;
  std::int64_t step = 0;
  std::vector<Life> lives;
  std::vector<std::string> names;
  std::string why;

  static constexpr auto fields() {
    return std::tuple(
        transport::required("kind", &Record::kind), transport::required("term", &Record::term),
        transport::required("epoch", &Record::epoch),
        transport::required("step", &Record::step).at_least(0),
        transport::required("lives", &Record::lives), transport::required("names", &Record::names),
        transport::required("why", &Record::why));
  }
  friend bool operator==(const Record&, const Record&) = default;
};

constexpr std::array<std::string_view, 8> enum_names(Record::Kind) {
  return {"term", "epoch", "active", "aborted", "dead", "strike", "saved", "ended"};
}

/// A summary of earlier heads' records.
struct Remembered {
  std::uint64_t term = 0;
  std::uint64_t epoch = 0;         // The latest number in use.
  bool has_begun = false;          // An attempt was planned.
  std::uint64_t active_epoch = 0;  // The latest active attempt; 0: none.
  bool is_in_force = false;        // No other attempt began after it.
  std::int64_t line = 0;           // The step after which it started.
  std::vector<Life> members;       // Its nodes.
  std::vector<std::string> names;  // Their names.
  bool has_ended = false;
  std::string why;  // The reason of the end.
};
Remembered remember(const std::vector<Record>& records);

}  // namespace troupe::actors::reconciler
