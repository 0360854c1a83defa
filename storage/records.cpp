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
  for (int line = 1; !text.empty(); ++line) {
    const auto end = text.find('\n');
    // Even if all but its end is there: the next writer closes it, and begins a line of its own.
    records.is_torn = end == text.npos;
    if (records.is_torn) break;
    const auto whole = text.substr(0, end + 1);
    text = text.substr(end + 1);
    if (whole.ends_with(closing)) {
      ++records.torn_before;
      continue;
    }
    const auto json = json_of(whole.substr(0, end), records.checksum);
    auto value = json ? parse_json(*json, limits) : Result<Value>(Error{});
    if (!value || !value->map()) {
      records.flaw = "line " + std::to_string(line) + " does not follow from those before it";
      break;
    }
    records.checksum = checksum_after(records.checksum, *json);
    records.good.push_back({line, std::move(*value)});
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

Result<RecordWriter> RecordWriter::open_anew(Files& files, const std::string& path) {
  const auto bytes = files.read(path);
  if (!bytes) return bytes.error();
  const auto there = read_records(bytes->text());
  if (!there.flaw.empty()) return Error{path + ": " + there.flaw};
  // A last line without its end comes back as it was: the next one closes it.
  if (auto replaced = replace_file(files, path, bytes->span()); !replaced) return replaced.error();
  return open(files, path);
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
