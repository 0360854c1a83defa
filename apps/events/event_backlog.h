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

/// Events that were told, as JSON, one a line; and where the next ones begin. What is published may
/// miss who listens too late or too slowly: who turns the pages misses nothing.
struct EventPage {
  std::string lines;
  std::int64_t next = 0;
  /// The line goes on on the next page: this one has a part of it, and no end of a line.
  bool goes_on = false;

  static constexpr auto fields() {
    return std::tuple(transport::required("lines", &EventPage::lines),
                      transport::optional("goes_on", &EventPage::goes_on),
                      transport::required("next", &EventPage::next).at_least(0));
  }
};

/// A longer line is left out of what is read.
constexpr std::size_t most_event_bytes = std::size_t{4} << 20;

/// A run's events are in two files: events.jsonl, which grows, and events.1.jsonl, which has those
/// before. Once the first has `most_events_file_bytes`, it takes the place of the other one, and
/// what was there is gone. Places in the events count all that was ever written.
constexpr std::int64_t most_events_file_bytes = std::int64_t{64} << 20;
/// "runs/r/events.1.jsonl" for "runs/r/events.jsonl"
std::string older_events(const std::string& path);
/// The first line of a file of events that has others before it: the place where it begins.
Value cut_event(const std::string& run, std::int64_t before);
/// The place at the end of a run's events; 0 where there are none.
std::int64_t end_of_events(const std::string& path);
/// The text of both files. An error if there is none.
Result<std::string> read_events(storage::Files& files, const std::string& folder);

/// Of a run's file of events, which may be growing; empty at its end, and where there is none yet.
/// Where the events at that place are gone, it begins with the oldest that are left.
Result<EventPage> read_page(const std::string& path, std::int64_t from);

/// The newest of the head's own events, which are of no run. Any thread.
class EventBacklog {
 public:
  void add(const Value& event);
  /// From the oldest that is still known, where `from` is older.
  EventPage page(std::int64_t from) const;

 private:
  mutable std::mutex mutex_;
  std::deque<std::string> lines_;
  std::int64_t first_ = 0;  // How many are not known any more.
};

}  // namespace troupe::apps
