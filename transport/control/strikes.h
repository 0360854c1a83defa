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
  std::size_t most = 10;                           // So many ...
  Duration within = std::chrono::seconds(60);      // ... within this time, and one is out,
  Duration quarantine = std::chrono::seconds(60);  // at first for so long, then for twice that,
  Duration longest = std::chrono::hours(1);        // but never for longer than this.
  std::size_t subjects = 4096;                     // Of whom we remember what they did.
};

/// Who has said what nobody should say, and is therefore not listened to for a while. A subject is
/// whatever text tells one from another: a key and an incarnation, or an address.
///
/// A subject without a strike for `longest` after its quarantine is forgotten. When too many are to
/// be remembered, the one whose last strike is the oldest is forgotten first.
class Strikes {
 public:
  enum class Verdict { noted, out };

  explicit Strikes(const StrikeRules& rules = {}) : rules_(rules) {}

  Verdict strike(const std::string& subject, TimePoint now);
  /// How long the subject is still out; nothing where it is not.
  std::optional<Duration> quarantine_left(const std::string& subject, TimePoint now) const;
  std::size_t remembered() const { return records_.size(); }

 private:
  struct Record {
    std::deque<TimePoint> recent;
    TimePoint last;
    TimePoint until;  // Of the last quarantine.
    int quarantines = 0;
  };

  void make_room(TimePoint now);
  bool is_over(const Record& record, TimePoint now) const;

  StrikeRules rules_;
  std::map<std::string, Record> records_;
};

}  // namespace troupe::transport
