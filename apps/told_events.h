#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <tuple>

#include "core/result.h"
#include "core/value.h"
#include "transport/fields.h"

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

/// Of a run's file of events, which may be growing; empty at its end, and where there is none yet.
Result<EventPage> read_page(const std::string& path, std::int64_t from);

/// The newest of the head's own events, which are of no run. Any thread.
class ToldEvents {
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
