#include "storage/records.h"

#include <cstdio>
#include <optional>
#include <span>
#include <utility>

#include "core/digest.h"
#include "core/json.h"

namespace troupe::storage {
namespace {

constexpr std::size_t digits = 16;
/// Lines that are kept until they are on the disk; at the first of these they are brought there.
constexpr std::size_t many_lines = 4'096;
constexpr std::size_t most_lines = 65'536;
/// What an open line is closed with, so that it is no record even where all of one is there.
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

/// The map of a line, where the line goes on from what the checksum is of.
std::optional<std::string_view> json_of(std::string_view line, std::uint64_t before) {
  if (line.size() <= digits || line[digits] != ' ') return {};
  const auto json = line.substr(digits + 1);
  if (line.substr(0, digits) != to_digits(checksum_after(before, json))) return {};
  return json;
}

/// The text of the first records.
std::string up_to_last(std::size_t count, const Records& records, std::string_view text) {
  return std::string(text.substr(0, count == 0 ? 0 : records.good[count - 1].end));
}

}  // namespace

Records read_records(std::string_view text) {
  Records records;
  std::size_t at = 0;
  for (int line = 1; at < text.size(); ++line) {
    const auto rest = text.substr(at);
    const auto end = rest.find('\n');
    // Even if all but its end is there: the next writer closes it, and begins a line of its own.
    records.is_torn = end == rest.npos;
    // But a crash puts no other end in its place.
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

RecordWriter::RecordWriter(Files& files, std::string path, const Records& there)
    : files_(&files),
      path_(std::move(path)),
      last_before_(there.good.empty() ? std::nullopt : std::optional(there.good.back().value)),
      synced_(there.good.size()),
      synced_checksum_(there.checksum),
      checksum_(there.checksum) {}

Result<RecordWriter> RecordWriter::open(Files& files, const std::string& path) {
  if (auto made = files.make_directory(parent_of(path)); !made) return made.error();
  std::string kept;
  Records there;
  const auto present = files.exists(path);
  if (!present.ok()) return present.error();
  if (*present) {
    const auto bytes = read_into_memory(files, path);
    if (!bytes) return bytes.error();
    there = read_records(bytes->text());
    if (!there.flaw.empty())
      return Error{path + ": " + there.flaw +
                   "; move the file away to begin a new one, which will not know what came before"};
    kept = up_to_last(there.good.size(), there, bytes->text());
  }
  RecordWriter writer(files, path, there);
  // Whoever wrote it may have been told that a sync of it failed: of that no later sync says a
  // word.
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

/// Line by line: of one that fails the end, at least, is not there.
Status RecordWriter::flush() {
  if (!file_) return write_anew();
  for (; written_ < lines_.size(); ++written_) {
    const std::string text = std::string(line_is_open_ ? closing : "") + lines_[written_];
    line_is_open_ = true;
    if (auto written = file_->write(std::as_bytes(std::span(text.data(), text.size()))); !written)
      return written;
    line_is_open_ = false;
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
  return Done{};
}

Status RecordWriter::take_back() {
  if (lines_.empty()) return Done{};
  lines_.clear();
  checksum_ = synced_checksum_;
  file_.reset();
  return write_anew();
}

/// What is on the disk, and what should have come after it.
Status RecordWriter::write_anew() {
  const auto bytes = read_into_memory(*files_, path_);
  if (!bytes) return bytes.error();
  const auto there = read_records(bytes->text());
  if (there.good.size() < synced_)
    return Error{path_ + ": of " + std::to_string(synced_) + " records that were on the disk " +
                 std::to_string(there.good.size()) + " are left"};
  return replace_with(up_to_last(synced_, there, bytes->text()));
}

/// A file of what is kept and of all that came since, in the place of the old one.
Status RecordWriter::replace_with(std::string kept) {
  file_.reset();
  for (const auto& line : lines_) kept += line;
  if (auto replaced = replace_file(*files_, path_, kept); !replaced) return replaced;
  auto file = files_->append(path_);
  if (!file) return file.error();
  file_ = std::move(*file);
  synced_ += lines_.size();
  synced_checksum_ = checksum_;
  lines_.clear();
  written_ = 0;
  line_is_open_ = false;
  return Done{};
}

}  // namespace troupe::storage
