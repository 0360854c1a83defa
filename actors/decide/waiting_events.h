#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "actors/decide/events.h"

namespace troupe::actors::decide {

/// The events of a run that wait because no decision can be written down. An event that adds
/// nothing to the waiting ones is left out, and events about a node's earlier process that the
/// machine never heard of are dropped when the next process comes. So at most nine events wait for
/// each node's name, four more for each node of the attempt, one for each pair of those, and a few
/// of the head. It takes no events of steps, whose answers need no disk.
class WaitingEvents {
 public:
  void add(Event event);

  bool is_empty() const { return events_.empty(); }
  std::size_t size() const { return events_.size(); }
  /// Returns the oldest event. There is one.
  const Event& front() const { return events_.begin()->second; }
  void pop_front();

 private:
  /// The subject of an event. Of two waiting events with one subject only one counts.
  struct Subject {
    std::size_t kind = 0;  // The event's place among all kinds.
    Life life = 0, other = 0;
    std::uint64_t number = 0;  // The attempt, the plan or the timer.
    std::int64_t detail = 0;

    auto operator<=>(const Subject&) const = default;
  };
  static Subject subject_of(const Event& event);
  void forget(Life life);
  void erase(const Subject& subject);

  std::map<std::uint64_t, Event> events_;        // The oldest has the lowest number.
  std::map<Subject, std::uint64_t> by_subject_;  // The numbers of the events.
  std::map<std::string, Life> came_;             // The processes whose NodeCame waits, by name.
  std::uint64_t last_ = 0;
};

}  // namespace troupe::actors::decide
