#include "storage/checkpoint/evaluation_log.h"

#include <cmath>
#include <utility>

namespace troupe::storage {
namespace {

constexpr const char* begins_after = "begins_after";

/// Adds a record to the list. Returns false if it is none of this log.
bool add(const Value& record, std::vector<EvaluatedStep>& all) {
  const auto* after = record.find(begins_after);
  if (after && after->integer()) {
    take_back(all, *after->integer());
    return true;
  }
  const auto* step = record.find("evaluated");
  const auto* loss = record.find("loss");
  if (!step || !step->integer() || !loss || !loss->is_number() || !std::isfinite(loss->number()))
    return false;
  take_back(all, *step->integer() - 1);
  all.push_back({*step->integer(), loss->number()});
  return true;
}

}  // namespace

void take_back(std::vector<EvaluatedStep>& evaluations, std::int64_t after) {
  std::erase_if(evaluations, [after](const auto& evaluated) { return evaluated.step > after; });
}

Result<EvaluationLog> EvaluationLog::open(Files& files, const std::string& path) {
  auto state = std::make_unique<State>(files, path);
  const auto there = files.exists(path);
  if (!there.ok()) return there.error();
  if (!*there) return EvaluationLog(std::move(state));
  auto records = RecordWriter::open(files, path);
  if (!records) return records.error();
  state->records = std::make_unique<RecordWriter>(std::move(*records));
  const auto bytes = read_into_memory(files, path);
  if (!bytes) return bytes.error();
  const auto read = read_records(bytes->text());
  if (!read.flaw.empty()) return Error{path + ": " + read.flaw};
  for (const auto& [line, end, value] : read.good)
    if (!add(value, state->all))
      return Error{path + ": line " + std::to_string(line) + " is no evaluation"};
  return EvaluationLog(std::move(state));
}

Status EvaluationLog::begin(std::int64_t after) {
  const std::lock_guard lock(state_->mutex);
  const auto before = state_->all.size();
  take_back(state_->all, after);
  if (state_->all.size() == before) return Done{};
  Value record;
  record.set(begins_after, after);
  return state_->append(std::move(record));
}

Status EvaluationLog::enter(const EvaluatedStep& evaluated) {
  const std::lock_guard lock(state_->mutex);
  Value record;
  record.set("evaluated", evaluated.step);
  record.set("loss", evaluated.loss);
  (void)add(record, state_->all);
  return state_->append(std::move(record));
}

Status EvaluationLog::sync() {
  const std::lock_guard lock(state_->mutex);
  if (auto flushed = state_->flush(); !flushed) return flushed;
  return state_->records ? state_->records->sync() : Done{};
}

std::vector<EvaluatedStep> EvaluationLog::all() const {
  const std::lock_guard lock(state_->mutex);
  return state_->all;
}

Status EvaluationLog::State::append(Value record) {
  waiting.push_back(std::move(record));
  return flush();
}

Status EvaluationLog::State::flush() {
  if (waiting.empty()) return Done{};
  if (!records) {
    auto opened = RecordWriter::open(files, path);
    if (!opened) return opened.error();
    records = std::make_unique<RecordWriter>(std::move(*opened));
  }
  Status appended = Done{};
  // A record that cannot be written now stays with the writer.
  for (const auto& record : std::exchange(waiting, {}))
    if (auto status = records->append(record); !status) appended = status;
  return appended;
}

}  // namespace troupe::storage
