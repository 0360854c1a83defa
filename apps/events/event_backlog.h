#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <tuple>

#include "core/result.h"
#include "core/value.h"
#include "storage/files/files.h"
#include "transport/wire/fields.h"

namespace troupe::apps {

/// A page of recorded events, one JSON object per line, and the place where the next page begins.
/// Published events can be missed by late or slow subscribers; a reader of pages misses none.
struct EventPage {
  std::string lines;
  std::int64_t next = 0;
  /// The last line continues on the next page: this page ends within it.
  bool goes_on = false;

  static constexpr auto fields() {
    return std::tuple(transport::required("lines", &EventPage::lines),
                      transport::optional("goes_on", &EventPage::goes_on),
                      transport::required("next", &EventPage::next).at_least(0));
  }
};

/// Longer lines are skipped by readers.
constexpr std::size_t most_event_bytes = std::size_t{4} << 20;

/// A run's events are in two files: events.jsonl, which grows, and events.1.jsonl with the events
/// before. Once the first has `most_events_file_bytes`, it replaces the second, whose events are
/// lost. Places in the events count all bytes that were ever written.
constexpr std::int64_t most_events_file_bytes = std::int64_t{64} << 20;
/// Returns the path of the older file: "runs/r/events.1.jsonl" for "runs/r/events.jsonl".
std::string older_events(const std::string& path);
/// Returns the first line of an events file that continues an older one. It holds the place where
/// the file begins.
Value cut_event(const std::string& run, std::int64_t before);
/// Returns the place at the end of a run's events; 0 if there are none.
std::int64_t end_of_events(storage::Files& files, const std::string& path);
/// Returns the text of both files. Fails if there is none.
Result<std::string> read_events(storage::Files& files, const std::string& folder);

/// Reads a page of a run's events, which may be growing. Returns an empty page at the end, and if
/// there is no file yet. If the events at `from` are gone, the page begins with the oldest that are
/// left.
Result<EventPage> read_page(storage::Files& files, const std::string& path, std::int64_t from);

/// The newest of the head's own events, which belong to no run. Any thread.
class EventBacklog {
 public:
  void add(const Value& event);
  /// Returns a page. If `from` is too old, it begins with the oldest event that is left.
  EventPage page(std::int64_t from) const;

 private:
  mutable std::mutex mutex_;
  std::deque<std::string> lines_;
  std::int64_t first_ = 0;  // The number of dropped events.
};

}  // namespace troupe::apps
