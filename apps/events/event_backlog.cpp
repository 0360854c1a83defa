#include "apps/events/event_backlog.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "core/json.h"

namespace troupe::apps {
namespace {

// Below the limit of 64 KiB for a text in a message.
constexpr std::size_t page_bytes = std::size_t{60} << 10;
constexpr std::size_t most_lines = 10'000;

constexpr const char* begins_at = "events_before";
constexpr JsonLimits first_line_limits = {.bytes = 4096, .depth = 4};

/// Reads up to `most` bytes of a file; fewer at its end.
std::string read_some(const storage::FileReader& file, std::int64_t from, std::size_t most) {
  const auto at = static_cast<std::uint64_t>(from);
  if (at >= file.size()) return {};
  std::string some(std::min<std::uint64_t>(most, file.size() - at), '\0');
  if (!file.read(at, std::as_writable_bytes(std::span(some.data(), some.size())))) return {};
  return some;
}

/// An open events file.
struct EventsFile {
  std::unique_ptr<storage::FileReader> file;
  std::int64_t begins = 0;  // The place of its first byte.

  std::int64_t end() const { return begins + static_cast<std::int64_t>(file->size()); }
};

/// Returns nothing if there is no such file.
std::optional<EventsFile> open_events(storage::Files& files, const std::string& path) {
  auto file = files.open(path);
  if (!file) return {};
  const auto line = read_some(**file, 0, first_line_limits.bytes);
  const auto first = parse_json(line.substr(0, line.find('\n')), first_line_limits);
  const Value* place = first && first->map() ? first->find(begins_at) : nullptr;
  const std::int64_t begins =
      place && place->integer() ? std::max<std::int64_t>(0, *place->integer()) : 0;
  return EventsFile{std::move(*file), begins};
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
  note.set("text", "earlier events are in events.1.jsonl; the oldest were deleted");
  return note;
}

std::int64_t end_of_events(storage::Files& files, const std::string& path) {
  const auto file = open_events(files, path);
  return file ? file->end() : 0;
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

Result<EventPage> read_page(storage::Files& files, const std::string& path, std::int64_t from) {
  EventPage page{{}, from, false};
  auto file = open_events(files, path);
  if (!file) return page;
  if (from < file->begins) {
    // A place beyond the older file's end lies in this file's first line.
    auto older = open_events(files, older_events(path));
    if (older && older->begins < file->begins) {
      file = std::move(older);
      from = std::max(from, file->begins);
    } else {
      from = file->begins;
    }
  }
  page.lines = read_some(*file->file, from - file->begins, page_bytes);
  const auto end = page.lines.rfind('\n');
  if (end == std::string::npos && page.lines.size() == page_bytes) {
    // A page is a text of a message, which must not be cut within a UTF-8 character.
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
