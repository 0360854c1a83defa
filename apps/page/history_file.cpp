#include "apps/page/history_file.h"

#include <utility>

#include "apps/events/event_backlog.h"
#include "core/json.h"

namespace troupe::apps {
namespace {

constexpr JsonLimits limits = {.bytes = most_event_bytes, .depth = 16};

}  // namespace

bool HistoryFile::read_on(int most_pages) {
  for (int i = 0; i < most_pages; ++i) {
    const auto page = read_page(files_, path_, next_);
    const bool is_end = !page || page->lines.empty();
    if (is_end != is_whole_) has_changed_ = true;
    is_whole_ = is_end;
    if (is_end) return true;
    has_changed_ = true;
    next_ = page->next;
    // A line that is longer than any event is skipped.
    if (begun_.size() < most_event_bytes) begun_ += page->lines;
    if (page->goes_on) continue;
    const std::string lines = std::exchange(begun_, {});
    std::string_view rest = lines;
    while (!rest.empty()) {
      const auto end = rest.find('\n');
      take(rest.substr(0, end));
      rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    }
  }
  return false;
}

/// Ignores a line that is no event: a crash may have cut it.
void HistoryFile::take(std::string_view line) {
  const auto event = parse_json(line, limits);
  if (event && event->map()) history_.add(*event);
}

const std::string& HistoryFile::json() {
  if (std::exchange(has_changed_, false)) json_ = history_.to_json(is_whole_);
  return json_;
}

}  // namespace troupe::apps
