#include "storage/records.h"

#include <charconv>
#include <cstdio>
#include <optional>
#include <span>
#include <utility>

#include "core/digest.h"
#include "core/json.h"

namespace troupe::storage {
namespace {

constexpr std::size_t digits = 16;
constexpr std::size_t most_unwritten = 65'536;
/// What an open line is closed with, so that it is no record even where all of one is there.
constexpr std::string_view closing = " torn\n";
constexpr JsonLimits limits = {.bytes = std::size_t{1} << 20, .depth = 16};

std::uint64_t checksum_after(std::uint64_t before, std::string_view json) {
  return checksum_of(std::as_bytes(std::span(json.data(), json.size())), before);
}

/// The map of a line, where the line goes on from what the checksum is of.
std::optional<std::string_view> json_of(std::string_view line, std::uint64_t before) {
  if (line.size() <= digits || line[digits] != ' ') return {};
  std::uint64_t stated = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + digits, stated, 16);
  if (error != std::errc() || end != line.data() + digits) return {};
  const auto json = line.substr(digits + 1);
  if (stated != checksum_after(before, json)) return {};
  return json;
}

}  // namespace

Records read_records(std::string_view text) {
  Records records;
  int torn = 0;  // Lines since the last good one.
  for (int line = 1; !text.empty(); ++line) {
    const auto end = text.find('\n');
    const bool is_whole = end != text.npos;
    const auto json = json_of(text.substr(0, end), records.checksum);
    text = is_whole ? text.substr(end + 1) : std::string_view();
    if (!is_whole) {
      // Even if all but its end is there: the next writer begins a line of its own.
      records.is_torn = true;
    } else if (!json) {
      if (torn++ == 0)
        records.flaw = "line " + std::to_string(line) + " does not follow from those before it";
    } else if (auto value = parse_json(*json, limits); value && value->map()) {
      records.torn_before += std::exchange(torn, 0);
      records.flaw.clear();
      records.checksum = checksum_after(records.checksum, *json);
      records.good.push_back({line, std::move(*value)});
    } else {
      records.flaw = "line " + std::to_string(line) + " is no map";
      break;
    }
  }
  return records;
}

RecordWriter::RecordWriter(std::unique_ptr<FileWriter> file, const Records& there)
    : file_(std::move(file)), checksum_(there.checksum), line_is_open_(there.is_torn) {}

Result<RecordWriter> RecordWriter::open(Files& files, const std::string& path) {
  if (auto made = files.make_directory(parent_of(path)); !made) return made.error();
  const bool is_new = !files.exists(path);
  Records there;
  if (!is_new) {
    const auto bytes = files.read(path);
    if (!bytes) return bytes.error();
    there = read_records(bytes->text());
    if (!there.flaw.empty())
      return Error{path + ": " + there.flaw +
                   "; move the file away to begin a new one, which will not know what came before"};
  }
  auto file = files.append(path);
  if (!file) return file.error();
  if (is_new)
    if (auto synced = files.sync_directory(parent_of(path)); !synced) return synced.error();
  return RecordWriter(std::move(*file), there);
}

Status RecordWriter::append(const Value& record) {
  if (unwritten_.size() == most_unwritten)
    lost_ = std::to_string(most_unwritten) + " records could not be written, and one more is lost";
  if (!lost_.empty()) return Error{lost_};
  const std::string json = to_json(record);
  checksum_ = checksum_after(checksum_, json);
  char checksum[digits + 1];
  std::snprintf(checksum, sizeof checksum, "%016llx", static_cast<unsigned long long>(checksum_));
  unwritten_.push_back(std::string(checksum) + " " + json + "\n");
  return flush();
}

/// Line by line: of one that fails the end, at least, is not there.
Status RecordWriter::flush() {
  for (; !unwritten_.empty(); unwritten_.pop_front()) {
    const std::string text = std::string(line_is_open_ ? closing : "") + unwritten_.front();
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
  auto synced = file_->sync();
  if (!synced) lost_ = synced.error().text;
  return synced;
}

}  // namespace troupe::storage
