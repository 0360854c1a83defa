#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "transport/wire/fields.h"

namespace troupe::actors::reconciler {

/// One life of a node's process: a random number that is never used again.
using Life = std::int64_t;

/// What a head writes down before it acts: a head that comes after it knows by these what was
/// decided.
struct Record {
  enum class Kind : std::uint8_t {
    term,     // A head begins.
    epoch,    // A plan was chosen, and nobody was told yet.
    active,   // It is in force, from a step on.
    aborted,  // It never will be.
    dead,     // A node, by decision.
    strike,   // Against a node's name.
    saved,    // A checkpoint is complete.
    ended,    // The run.
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

/// What the records of earlier heads say.
struct Remembered {
  std::uint64_t term = 0;
  std::uint64_t epoch = 0;         // The newest number that was given out.
  std::uint64_t active_epoch = 0;  // The newest that was in force; 0: none.
  bool is_in_force = false;        // Nothing was begun after it.
  std::int64_t line = 0;           // The step that it began after.
  std::vector<Life> members;       // Of it.
  std::vector<std::string> names;  // Theirs.
  bool has_ended = false;
  std::string why;  // It has.
};
Remembered remember(const std::vector<Record>& records);

}  // namespace troupe::actors::reconciler
