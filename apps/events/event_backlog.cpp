#include "apps/events/event_backlog.h"

#include <algorithm>
#include <fstream>

#include "core/json.h"

namespace troupe::apps {
namespace {

// A text of a message may have 64 KiB.
constexpr std::size_t page_bytes = std::size_t{60} << 10;
constexpr std::size_t most_lines = 10'000;

constexpr const char* begins_at = "events_before";
constexpr JsonLimits first_line_limits = {.bytes = 4096, .depth = 4};

/// The place at which an open file of events begins.
std::int64_t beginning_of_file(std::ifstream& file) {
  std::string line(first_line_limits.bytes, '\0');
  file.seekg(0);
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  file.clear();
  const auto first = parse_json(line.substr(0, line.find('\n')), first_line_limits);
  const Value* place = first && first->map() ? first->find(begins_at) : nullptr;
  return place && place->integer() ? std::max<std::int64_t>(0, *place->integer()) : 0;
}

}  // namespace

std::string older_events(const std::string& path) {
  const std::string_view ending = ".jsonl";
  return path.substr(0, path.size() - ending.size()) + ".1" + std::string(ending);
}

Value cut_event(const std::string& run, std::int64_t before) {
  Value note;
  note.set("type", "warn");
  note.set("run", run);
  note.set(begins_at, before);
  note.set("text", "the events before this one are in events.1.jsonl, and the oldest are gone");
  return note;
}

std::int64_t end_of_events(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return 0;
  const auto begins = beginning_of_file(file);
  file.seekg(0, std::ios::end);
  return begins + static_cast<std::int64_t>(file.tellg());
}

Result<std::string> read_events(storage::Files& files, const std::string& folder) {
  const std::string path = folder + "/events.jsonl";
  std::string text;
  const auto older = files.exists(older_events(path));
  if (!older.ok()) return older.error();
  if (*older) {
    const auto bytes = files.read(older_events(path));
    if (!bytes) return bytes.error();
    text = bytes->text();
  }
  const auto bytes = files.read(path);
  if (!bytes) return bytes.error();
  return text + std::string(bytes->text());
}

Result<EventPage> read_page(const std::string& path, std::int64_t from) {
  EventPage page{{}, from, false};
  std::ifstream file(path, std::ios::binary);
  if (!file) return page;
  std::int64_t begins = beginning_of_file(file);
  if (from < begins) {
    // A place behind the end of the older file is one in this file's first line.
    std::ifstream older(older_events(path), std::ios::binary);
    const auto older_begins = older ? beginning_of_file(older) : begins;
    if (older && older_begins < begins) {
      file = std::move(older);
      from = std::max(from, older_begins);
      begins = older_begins;
    } else {
      from = begins;
    }
  }
  file.seekg(from - begins);
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

void EventBacklog::add(const Value& event) {
  const std::lock_guard lock(mutex_);
  lines_.push_back(to_json(event) + "\n");
  if (lines_.size() <= most_lines) return;
  lines_.pop_front();
  ++first_;
}

EventPage EventBacklog::page(std::int64_t from) const {
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
