#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace troupe::transport {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

struct StrikeRules {
  std::size_t most = 10;                           // This many strikes
  Duration within = std::chrono::seconds(60);      // within this time put a subject out,
  Duration quarantine = std::chrono::seconds(60);  // first for this long, doubling each time,
  Duration longest = std::chrono::hours(1);        // up to this limit.
  std::size_t subjects = 4096;                     // The most subjects to remember.
};

/// Subjects that sent invalid messages and are ignored for a while. A subject is any identifying
/// text: a key with an incarnation, or an address.
///
/// A subject without a strike for `longest` after its quarantine is forgotten. If there are too
/// many, the one with the oldest last strike is forgotten first.
class Strikes {
 public:
  enum class Verdict { noted, out };

  explicit Strikes(const StrikeRules& rules = {}) : rules_(rules) {}

  Verdict strike(const std::string& subject, TimePoint now);
  /// Returns the rest of the subject's quarantine, or nothing if it is not out.
  std::optional<Duration> quarantine_left(const std::string& subject, TimePoint now) const;
  std::size_t remembered() const { return records_.size(); }

 private:
  struct Record {
    std::deque<TimePoint> recent;
    TimePoint last;
    TimePoint until;  // The end of the last quarantine.
    int quarantines = 0;
  };

  void make_room(TimePoint now);
  bool is_over(const Record& record, TimePoint now) const;

  StrikeRules rules_;
  std::map<std::string, Record> records_;
};

}  // namespace troupe::transport
