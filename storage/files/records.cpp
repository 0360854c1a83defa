#include "storage/files/records.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "core/digest.h"
#include "core/json.h"

namespace troupe::storage {
namespace {

constexpr std::size_t digits = 16;
/// Bounds on unsynced lines: append() syncs at multiples of many_lines and fails at most_lines.
constexpr std::size_t many_lines = 4'096;
constexpr std::size_t most_lines = 65'536;
/// The end of a torn line, which keeps even a complete record on that line from counting.
constexpr std::string_view closing = " torn\n";
constexpr JsonLimits limits = {.bytes = std::size_t{1} << 20, .depth = 16};

std::uint64_t checksum_after(std::uint64_t before, std::string_view json) {
  return checksum_of(std::as_bytes(std::span(json.data(), json.size())), before);
}

std::string to_digits(std::uint64_t checksum) {
  char text[digits + 1];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(checksum));
  return text;
}

/// Returns the line's JSON if its checksum continues from `before`.
std::optional<std::string_view> json_of(std::string_view line, std::uint64_t before) {
  if (line.size() <= digits || line[digits] != ' ') return {};
  const auto json = line.substr(digits + 1);
  if (line.substr(0, digits) != to_digits(checksum_after(before, json))) return {};
  return json;
}

std::string segment_name(const std::string& path, std::size_t number) {
  return path + "." + std::to_string(number);
}

/// Reads the last record of a segment that no longer grows, and its checksum.
Status read_last(Files& files, const std::string& path, Segments& segments) {
  const auto file = files.open(path);
  if (!file) return file.error();
  const auto size = (*file)->size();
  std::string end(static_cast<std::size_t>(std::min<std::uint64_t>(size, 2 * limits.bytes)), '\0');
  if (auto read = (*file)->read(size - end.size(), std::as_writable_bytes(std::span(end))); !read)
    return read;
  const bool is_whole = end.ends_with('\n');
  const auto begin = end.rfind('\n', end.size() - 2);  // Or npos.
  const auto line = std::string_view(end).substr(begin == end.npos ? 0 : begin + 1);
  std::uint64_t checksum = 0;
  const auto [rest, error] =
      std::from_chars(line.data(), line.data() + std::min(digits, line.size()), checksum, 16);
  const bool has_digits = error == std::errc() && rest == line.data() + digits;
  auto value = is_whole && has_digits && line.size() > digits + 2
                   ? parse_json(line.substr(digits + 1, line.size() - digits - 2), limits)
                   : Result<Value>(Error{});
  if (!value || !value->map())
    return Error{path + ": the last line is no record; put a copy of the file there"};
  segments.checksum = checksum;
  segments.last = std::move(*value);
  return Done{};
}

/// Returns the text of the first `count` records.
std::string up_to_last(std::size_t count, const Records& records, std::string_view text) {
  return std::string(text.substr(0, count == 0 ? 0 : records.good[count - 1].end));
}

}  // namespace

Records read_records(std::string_view text, std::uint64_t before) {
  Records records;
  records.checksum = before;
  std::size_t at = 0;
  for (int line = 1; at < text.size(); ++line) {
    const auto rest = text.substr(at);
    const auto end = rest.find('\n');
    // Even if only the line break is missing: the next writer closes the line and begins a new one.
    records.is_torn = end == rest.npos;
    // A crash cuts a line off but does not replace its last character, so that would be a flaw.
    if (records.is_torn && !json_of(rest.substr(0, rest.size() - 1), records.checksum)) break;
    const auto whole = rest.substr(0, records.is_torn ? end : end + 1);
    at += whole.size();
    if (whole.ends_with(closing)) continue;
    const auto json =
        records.is_torn ? std::nullopt : json_of(whole.substr(0, end), records.checksum);
    auto value = json ? parse_json(*json, limits) : Result<Value>(Error{});
    if (!value || !value->map()) {
      records.is_torn = false;
      records.flaw = "line " + std::to_string(line) + " does not follow from those before it";
      break;
    }
    records.checksum = checksum_after(records.checksum, *json);
    records.good.push_back({line, at, std::move(*value)});
  }
  return records;
}

Result<Segments> segments_of(Files& files, const std::string& path) {
  Segments segments;
  for (;;) {
    std::string next = segment_name(path, segments.older.size() + 1);
    const auto there = files.exists(next);
    if (!there.ok()) return there.error();
    if (!*there) break;
    segments.older.push_back(std::move(next));
  }
  if (!segments.older.empty())
    if (auto read = read_last(files, segments.older.back(), segments); !read) return read.error();
  return segments;
}

Result<std::uint64_t> checksum_up_to(Files& files, const std::vector<std::string>& segments) {
  Segments found;
  if (segments.empty()) return found.checksum;
  if (auto read = read_last(files, segments.back(), found); !read) return read.error();
  return found.checksum;
}

Existence grows(Files& files, const std::string& path, const Segments& segments) {
  const auto there = files.exists(path);
  if (!there.ok() || !*there || !segments.last) return there;
  Segments here;
  // An empty or torn segment cannot be an older one.
  return !read_last(files, path, here) || here.checksum != segments.checksum;
}

Result<std::string> read_segments(Files& files, const std::string& path) {
  auto segments = segments_of(files, path);
  if (!segments) return segments.error();
  const auto newest = grows(files, path, *segments);
  if (!newest.ok()) return newest.error();
  auto& all = segments->older;
  if (*newest || all.empty()) all.push_back(path);
  std::string text;
  for (const auto& segment : all) {
    const auto bytes = read_into_memory(files, segment);
    if (!bytes) return bytes.error();
    text += bytes->text();
  }
  return text;
}

RecordWriter::RecordWriter(Files& files, std::string path, Segments segments, const Records& there,
                           std::size_t segment_bytes)
    : files_(&files),
      path_(std::move(path)),
      last_before_(there.good.empty() ? std::move(segments.last)
                                      : std::optional(there.good.back().value)),
      segment_bytes_(segment_bytes),
      older_(segments.older.size()),
      older_checksum_(segments.checksum),
      synced_(there.good.size()),
      synced_checksum_(there.checksum),
      checksum_(there.checksum) {}

Result<RecordWriter> RecordWriter::open(Files& files, const std::string& path,
                                        std::size_t segment_bytes) {
  if (auto made = files.make_directory(parent_of(path)); !made) return made.error();
  auto segments = segments_of(files, path);
  if (!segments) return segments.error();
  std::string kept;
  Records there;
  there.checksum = segments->checksum;
  const auto present = grows(files, path, *segments);
  if (!present.ok()) return present.error();
  if (*present) {
    const auto bytes = read_into_memory(files, path);
    if (!bytes) return bytes.error();
    there = read_records(bytes->text(), segments->checksum);
    if (!there.flaw.empty())
      return Error{path + ": " + there.flaw +
                   "; move the file away to begin a new one, which will not know what came before"};
    kept = up_to_last(there.good.size(), there, bytes->text());
  }
  RecordWriter writer(files, path, std::move(*segments), there, segment_bytes);
  // Rewrite, because the previous writer may have seen a sync fail. No later sync would report
  // that.
  if (auto replaced = writer.replace_with(std::move(kept)); !replaced) return replaced.error();
  return writer;
}

Status RecordWriter::append(const Value& record) {
  if (lost_.empty() && lines_.size() == most_lines)
    lost_ = path_ + ": " + std::to_string(most_lines) +
            " records could not be brought to the disk, and one more is lost";
  if (!lost_.empty()) return Error{lost_};
  const std::string json = to_json(record);
  checksum_ = checksum_after(checksum_, json);
  lines_.push_back(to_digits(checksum_) + " " + json + "\n");
  return lines_.size() % many_lines == 0 ? sync() : flush();
}

/// Writes line by line. If a line fails, at least its end is missing from the file.
Status RecordWriter::flush() {
  if (!file_) return write_anew();
  for (; written_ < lines_.size(); ++written_) {
    const std::string text = std::string(line_is_open_ ? closing : "") + lines_[written_];
    line_is_open_ = true;
    if (auto written = file_->write(std::as_bytes(std::span(text.data(), text.size()))); !written)
      return written;
    line_is_open_ = false;
    bytes_ += text.size();
  }
  return Done{};
}

Status RecordWriter::sync() {
  if (!lost_.empty()) return Error{lost_};
  if (auto flushed = flush(); !flushed) return flushed;
  if (lines_.empty()) return Done{};
  if (auto synced = file_->sync(); !synced) {
    file_.reset();
    return synced;
  }
  synced_ += lines_.size();
  synced_checksum_ = checksum_;
  lines_.clear();
  written_ = 0;
  if (bytes_ >= segment_bytes_) begin_segment();
  return Done{};
}

/// Turns this synced segment into an older one. If the link fails, it keeps growing.
void RecordWriter::begin_segment() {
  if (!files_->link(path_, segment_name(path_, older_ + 1))) return;
  ++older_;
  older_checksum_ = synced_checksum_;
  synced_ = bytes_ = 0;
  // If this fails, the next append() creates the segment.
  file_.reset();
  (void)write_anew();
}

Status RecordWriter::take_back() {
  if (lines_.empty()) return Done{};
  lines_.clear();
  checksum_ = synced_checksum_;
  file_.reset();
  return write_anew();
}

/// Writes the records that are on the disk and all later ones to a new file.
Status RecordWriter::write_anew() {
  if (synced_ == 0 && older_ > 0) {
    const auto has_begun = grows(*files_, path_, {{}, older_checksum_, Value{}});
    if (!has_begun.ok()) return has_begun.error();
    // Make the older segment's name durable before another file replaces this one.
    if (!*has_begun) {
      if (auto synced = files_->sync_directory(parent_of(path_)); !synced) return synced;
      return replace_with({});
    }
  }
  const auto bytes = read_into_memory(*files_, path_);
  if (!bytes) return bytes.error();
  const auto there = read_records(bytes->text(), older_checksum_);
  if (there.good.size() < synced_)
    return Error{path_ + ": of " + std::to_string(synced_) + " records that were on the disk " +
                 std::to_string(there.good.size()) + " are left"};
  return replace_with(up_to_last(synced_, there, bytes->text()));
}

/// Replaces the file by the text `kept` and all lines since.
Status RecordWriter::replace_with(std::string kept) {
  file_.reset();
  for (const auto& line : lines_) kept += line;
  if (auto replaced = replace_file(*files_, path_, kept); !replaced) return replaced;
  auto file = files_->append(path_);
  if (!file) return file.error();
  file_ = std::move(*file);
  bytes_ = kept.size();
  synced_ += lines_.size();
  synced_checksum_ = checksum_;
  lines_.clear();
  written_ = 0;
  line_is_open_ = false;
  return Done{};
}

}  // namespace troupe::storage
