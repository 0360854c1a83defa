#include "apps/told_events.h"

#include <algorithm>
#include <fstream>

#include "core/json.h"

namespace troupe::apps {
namespace {

// A text of a message may have 64 KiB.
constexpr std::size_t page_bytes = std::size_t{60} << 10;
constexpr std::size_t most_lines = 10'000;

}  // namespace

Result<EventPage> read_page(const std::string& path, std::int64_t from) {
  EventPage page{{}, from, false};
  std::ifstream file(path, std::ios::binary);
  if (!file) return page;
  file.seekg(from);
  page.lines.resize(page_bytes);
  file.read(page.lines.data(), static_cast<std::streamsize>(page_bytes));
  page.lines.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  const auto end = page.lines.rfind('\n');
  if (end == std::string::npos && page.lines.size() == page_bytes) {
    // A page is a text of a message, and no text may be cut amid a character.
    while (!page.lines.empty() && (page.lines.back() & 0xc0) == 0x80) page.lines.pop_back();
    if (!page.lines.empty()) page.lines.pop_back();
    page.goes_on = !page.lines.empty();
    page.next = from + static_cast<std::int64_t>(page.lines.size());
    return page;
  }
  page.lines.resize(end == std::string::npos ? 0 : end + 1);
  page.next = from + static_cast<std::int64_t>(page.lines.size());
  return page;
}

void ToldEvents::add(const Value& event) {
  const std::lock_guard lock(mutex_);
  lines_.push_back(to_json(event) + "\n");
  if (lines_.size() <= most_lines) return;
  lines_.pop_front();
  ++first_;
}

EventPage ToldEvents::page(std::int64_t from) const {
  const std::lock_guard lock(mutex_);
  EventPage page{
      {}, std::clamp(from, first_, first_ + static_cast<std::int64_t>(lines_.size())), false};
  for (auto at = static_cast<std::size_t>(page.next - first_);
       at < lines_.size() && page.lines.size() + lines_[at].size() <= page_bytes; ++at) {
    page.lines += lines_[at];
    ++page.next;
  }
  return page;
}

}  // namespace troupe::apps
