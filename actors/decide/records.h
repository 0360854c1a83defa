#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "transport/wire/fields.h"

namespace troupe::actors::decide {

/// One life of a node's process: a random number that is never reused.
using Life = std::int64_t;

/// A decision that a head writes down before it acts, so that a later head knows it.
struct Record {
  enum class Kind : std::uint8_t {
    term,     // A head begins.
    planned,  // A plan was chosen; no node knows it yet.
    begun,    // The plan's attempt begins after `step`.
    aborted,  // The attempt will never begin, or the run has ended.
    dead,     // A node was declared dead.
    strike,   // A strike against a node's name.
  };

  Kind kind = Kind::term;
  std::uint64_t term = 0;
  std::uint64_t attempt = 0;
  std::int64_t step = 0;
  std::vector<Life> lives = {};
  std::vector<std::string> names = {};
  std::string why = {};

  static constexpr auto fields() {
    return std::tuple(
        transport::required("kind", &Record::kind), transport::required("term", &Record::term),
        transport::required("attempt", &Record::attempt),
        transport::required("step", &Record::step).at_least(0),
        transport::required("lives", &Record::lives), transport::required("names", &Record::names),
        transport::required("why", &Record::why));
  }
  friend bool operator==(const Record&, const Record&) = default;
};

constexpr std::array<std::string_view, 6> enum_names(Record::Kind) {
  return {"term", "planned", "begun", "aborted", "dead", "strike"};
}

/// A summary of earlier heads' records.
struct Remembered {
  std::uint64_t term = 0;
  std::uint64_t attempt = 0;     // The latest number in use.
  bool has_planned = false;      // An attempt was planned.
  std::vector<std::string> led;  // The nodes of the last attempt, if it has begun and goes on.
};
Remembered remember(const std::vector<Record>& records);

/// The records in a file of earlier heads.
struct Journal {
  std::vector<Record> records;
  bool is_torn = false;  // The last record was not written to its end.
  std::string flaw;      // The error and its place if the file is damaged.
};
Journal read_journal(std::string_view text);

}  // namespace troupe::actors::decide
