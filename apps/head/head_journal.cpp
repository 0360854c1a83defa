#include "apps/head/head_journal.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "storage/files/claim.h"
#include "transport/wire/fields.h"

namespace troupe::apps {
namespace {

// The types of records.

constexpr std::string_view term_type = "term";
const std::string advice = "; put a copy of it there, or move it away to begin without its runs";

Value term_record(std::uint64_t term) {
  Value value;
  value.set("type", std::string(term_type));
  value.set("term", static_cast<std::int64_t>(term));
  return value;
}

struct ListenRecord {
  static constexpr std::string_view type = "listen";
  std::string endpoint;
  std::string events;
  static constexpr auto fields() {
    return std::tuple(transport::required("endpoint", &ListenRecord::endpoint),
                      transport::required("events", &ListenRecord::events));
  }
};
struct RunRecord {
  static constexpr std::string_view type = "run";
  std::string run;
  std::int64_t submission = 0;
  Value config;
  static constexpr auto fields() {
    return std::tuple(transport::required("run", &RunRecord::run),
                      transport::required("submission", &RunRecord::submission),
                      transport::required("config", &RunRecord::config));
  }
};
struct ChoiceRecord {
  static constexpr std::string_view type = "choice";
  std::string run;
  Value choice;
  static constexpr auto fields() {
    return std::tuple(transport::required("run", &ChoiceRecord::run),
                      transport::required("choice", &ChoiceRecord::choice));
  }
};
struct StateRecord {
  static constexpr std::string_view type = "state";
  std::string run;
  std::string state;
  std::string why;
  static constexpr auto fields() {
    return std::tuple(transport::required("run", &StateRecord::run),
                      transport::required("state", &StateRecord::state),
                      transport::optional("why", &StateRecord::why));
  }
};

struct EndedRecord {
  static constexpr std::string_view type = "ended";
  std::string run;
  std::int64_t submission = 0;
  std::string state;
  std::string why;
  std::int64_t step = 0;
  std::int64_t steps = 0;
  std::optional<double> loss, goodput;
  double time = 0;
  static constexpr auto fields() {
    return std::tuple(transport::required("run", &EndedRecord::run),
                      transport::required("submission", &EndedRecord::submission),
                      transport::required("state", &EndedRecord::state),
                      transport::optional("why", &EndedRecord::why),
                      transport::required("step", &EndedRecord::step),
                      transport::required("steps", &EndedRecord::steps),
                      transport::optional("loss", &EndedRecord::loss),
                      transport::optional("goodput", &EndedRecord::goodput),
                      transport::required("time", &EndedRecord::time));
  }
};

/// The file may have this many more records than needed before it is rewritten.
constexpr std::size_t most_spare_records = 2000;

template <class Record>
Value typed(const Record& record) {
  Value value = transport::to_value(record);
  value.set("type", std::string(Record::type));
  return value;
}

}  // namespace

Result<std::unique_ptr<HeadJournal>> HeadJournal::open(const storage::Claimant& head,
                                                       storage::Files& files,
                                                       const std::string& folder,
                                                       const EndedBounds& bounds) {
  std::unique_ptr<HeadJournal> journal(new HeadJournal(head.env, files, bounds));
  if (auto made = files.make_directory(folder); !made) return made.error();
  auto lock = storage::lock_folder(files, head, folder,
                                   "if another head lives there, stop it, or give this one a "
                                   "folder of its own with --state");
  if (!lock) return lock.error();
  journal->lock_ = std::move(*lock);
  journal->path_ = folder + "/journal";
  if (auto read = journal->read(journal->path_); !read) return read.error();
  ++journal->term_;
  journal->forget_old();
  if (auto begun = journal->begin(); !begun) return begun.error();
  return journal;
}

Status HeadJournal::read(const std::string& path) {
  const auto there = files_.exists(path);
  if (!there.ok()) return there.error();
  if (!*there) return Done{};
  const auto bytes = storage::read_into_memory(files_, path);
  if (!bytes) return bytes.error();
  const auto read = storage::read_records(bytes->text());
  if (!read.flaw.empty()) return Error{path + ": " + read.flaw + advice};
  // A complete file has a term, since it was renamed into place after its term was written.
  if (read.good.empty()) return Error{path + ": holds nothing, and held a term" + advice};
  for (const auto& record : read.good)
    if (auto learned = learn(record.value, path + ": line " + std::to_string(record.line));
        !learned)
      return learned;
  return Done{};
}

/// Rewrites the file with the records that are still needed. The rename is atomic, so a reader
/// finds the old or the new file.
Status HeadJournal::begin() {
  const std::string unfinished = path_ + ".new";
  const auto needed = all();
  if (auto removed = storage::remove_if_there(files_, unfinished); !removed) return removed;
  {
    auto records = storage::RecordWriter::open(files_, unfinished);
    if (!records) return records.error();
    for (const auto& record : needed)
      if (auto appended = records->append(record); !appended) return appended;
    if (auto synced = records->sync(); !synced) return synced;
  }
  // Stops writing to the old file, which the rename may have replaced even if it fails.
  records_.reset();
  if (auto renamed = files_.rename(unfinished, path_); !renamed) return renamed;
  auto records = storage::RecordWriter::open(files_, path_);
  if (!records) return records.error();
  records_ = std::move(*records);
  written_ = needed.size();
  return Done{};
}

Status HeadJournal::learn(const Value& record, const std::string& place) {
  const Value* type = record.find("type");
  const auto is = [&](std::string_view name) {
    return type && type->text() && *type->text() == name;
  };
  if (is(term_type)) {
    const Value* term = record.find("term");
    if (!term || !term->integer() || *term->integer() < 1)
      return Error{place + ".term: wanted a number from 1 up"};
    term_ = static_cast<std::uint64_t>(*term->integer());
  } else if (is(ListenRecord::type)) {
    auto read = transport::from_value<ListenRecord>(record, place);
    if (!read) return read.error();
    listened_ = std::move(read->endpoint);
    published_ = std::move(read->events);
  } else if (is(RunRecord::type)) {
    auto read = transport::from_value<RunRecord>(record, place);
    if (!read) return read.error();
    auto& run = runs_[read->run];
    run = {};
    run.submission = static_cast<std::uint64_t>(read->submission);
    run.config = std::move(read->config);
    run.state = "running";
  } else if (is(ChoiceRecord::type)) {
    auto read = transport::from_value<ChoiceRecord>(record, place);
    if (!read) return read.error();
    runs_[read->run].choice = std::move(read->choice);
  } else if (is(StateRecord::type)) {
    auto read = transport::from_value<StateRecord>(record, place);
    if (!read) return read.error();
    auto& run = runs_[read->run];
    run.state = std::move(read->state);
    run.why = std::move(read->why);
  } else if (is(GivenOrder::type)) {
    auto read = transport::from_value<GivenOrder>(record, place);
    if (!read) return read.error();
    orders_.push_back(std::move(*read));
    if (orders_.size() > bounds_.most) orders_.pop_front();
  } else if (is(EndedRecord::type)) {
    auto read = transport::from_value<EndedRecord>(record, place);
    if (!read) return read.error();
    auto& run = runs_[read->run];
    run = {};
    run.submission = static_cast<std::uint64_t>(read->submission);
    run.state = std::move(read->state);
    run.why = std::move(read->why);
    run.step = read->step;
    run.steps = read->steps;
    run.last = {read->loss, read->goodput};
    run.ended = read->time;
  } else {
    return Error{place + ": found a record of a type that this version does not know"};
  }
  return Done{};
}

std::vector<Value> HeadJournal::all() const {
  std::vector<Value> records{term_record(term_)};
  if (!listened_.empty()) records.push_back(typed(ListenRecord{listened_, published_}));
  for (const auto& order : orders_) records.push_back(typed(order));
  for (const auto& [name, run] : runs_) {
    const auto submission = static_cast<std::int64_t>(run.submission);
    if (run.ended > 0) {
      records.push_back(typed(EndedRecord{name, submission, run.state, run.why, run.step, run.steps,
                                          run.last.loss, run.last.goodput, run.ended}));
      continue;
    }
    records.push_back(typed(RunRecord{name, submission, run.config}));
    if (!run.choice.is_null()) records.push_back(typed(ChoiceRecord{name, run.choice}));
    records.push_back(typed(StateRecord{name, run.state, run.why}));
  }
  return records;
}

std::map<std::string, RememberedRun> HeadJournal::runs() const {
  const std::lock_guard lock(mutex_);
  return runs_;
}

std::deque<GivenOrder> HeadJournal::orders() const {
  const std::lock_guard lock(mutex_);
  return orders_;
}

Status HeadJournal::ordered(const std::string& by, const std::string& order,
                            const std::string& subject) {
  return write(typed(GivenOrder{now(), by, order, subject}));
}

bool HeadJournal::knows(const std::string& run) const {
  const std::lock_guard lock(mutex_);
  return runs_.contains(run);
}

double HeadJournal::now() const {
  return std::chrono::duration<double>(env_.wall_time().time_since_epoch()).count();
}

void HeadJournal::forget_old() {
  const double oldest = now() - static_cast<double>(bounds_.age.count());
  std::vector<std::pair<double, std::string>> ended;
  for (const auto& [name, run] : runs_)
    if (run.ended > 0) ended.emplace_back(run.ended, name);
  std::ranges::sort(ended);
  for (std::size_t i = 0; i < ended.size(); ++i)
    if (ended[i].first < oldest || ended.size() - i > bounds_.most) runs_.erase(ended[i].second);
}

Status HeadJournal::listens(const std::string& endpoint, const std::string& events) {
  if (endpoint == listened_ && events == published_) return Done{};
  return write(typed(ListenRecord{endpoint, events}));
}

Status HeadJournal::submitted(const std::string& run, std::uint64_t submission,
                              const Value& config) {
  return write(typed(RunRecord{run, static_cast<std::int64_t>(submission), config}));
}

Status HeadJournal::chosen(const std::string& run, const Value& choice) {
  return write(typed(ChoiceRecord{run, choice}));
}

Status HeadJournal::changed(const std::string& run, const std::string& state,
                            const std::string& why) {
  return write(typed(StateRecord{run, state, why}));
}

Status HeadJournal::ended(const std::string& run, const std::string& state, const std::string& why,
                          std::int64_t step, std::int64_t steps, const LastStep& last) {
  std::int64_t submission = 0;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = runs_.find(run); known != runs_.end())
      submission = static_cast<std::int64_t>(known->second.submission);
  }
  auto written = write(
      typed(EndedRecord{run, submission, state, why, step, steps, last.loss, last.goodput, now()}));
  const std::lock_guard lock(mutex_);
  forget_old();
  return written;
}

Status HeadJournal::write(const Value& record) {
  const std::lock_guard lock(mutex_);
  // If the rewrite fails before the rename, the old file stays in use. If it fails later, the next
  // write tries again.
  if (!records_ || written_ > 3 * runs_.size() + orders_.size() + most_spare_records)
    if (auto begun = begin(); !begun && !records_) return begun;
  ++written_;
  Status written = records_->append(record);
  if (written) written = records_->sync();
  if (written) return learn(record, "a record of its own");
  // The caller treats the record as not written, so it is removed. If that fails too, the next
  // write tries again.
  (void)records_->take_back();
  return written;
}

}  // namespace troupe::apps
