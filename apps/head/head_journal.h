#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/value.h"
#include "storage/files/files.h"
#include "storage/files/records.h"
#include "transport/wire/fields.h"

namespace troupe::apps {

/// A run as a head remembers it.
struct RememberedRun {
  std::uint64_t submission = 0;  // The id of the message that gave it.
  Value config;                  // Null for a run that has ended.
  std::string state;             // As RunStanding has it; "stopping" where it was asked to.
  std::string why;
  Value choice;  // What was chosen for it, as RunChoice has it; null: nothing yet.
  std::int64_t step = 0, steps = 0;  // Of a run that has ended: those done, of all.
  double ended = 0;                  // When: seconds since 1970. 0: it has not.
};

/// An order that somebody has given.
struct GivenOrder {
  static constexpr std::string_view type = "order";
  double time = 0;      // Seconds since 1970.
  std::string by;       // "user 1000", or the host and the beginning of the key.
  std::string order;    // The type of the message: "run.stop".
  std::string subject;  // The run or the node that it is about.

  static constexpr auto fields() {
    return std::tuple(transport::required("time", &GivenOrder::time),
                      transport::required("by", &GivenOrder::by),
                      transport::required("order", &GivenOrder::order),
                      transport::optional("subject", &GivenOrder::subject));
  }
};

/// How many runs that have ended a head remembers, and how long.
struct EndedBounds {
  std::size_t most = 1000;  // The same of orders.
  std::chrono::seconds age = std::chrono::hours(24 * 30);
  /// Seconds since 1970.
  std::function<double()> clock;  // Null: the system's.
};

/// What a head knows from one of its lives to the next: how many there were, where it listens, and
/// its runs. What is told to it is on the disk when it returns; where that fails it was never told.
/// Any thread.
class HeadJournal {
 public:
  /// Begins a new life, with a higher term. An error where another head lives in that folder.
  static Result<std::unique_ptr<HeadJournal>> open(
      const std::string& folder, std::shared_ptr<storage::Files> files = storage::disk_files(),
      EndedBounds bounds = {});
  ~HeadJournal();
  HeadJournal(const HeadJournal&) = delete;
  HeadJournal& operator=(const HeadJournal&) = delete;

  std::uint64_t term() const { return term_; }
  /// Where it listened, and published; empty in its first life.
  const std::string& listened() const { return listened_; }
  const std::string& published() const { return published_; }
  std::map<std::string, RememberedRun> runs() const;
  bool knows(const std::string& run) const;

  /// The newest, oldest first.
  std::deque<GivenOrder> orders() const;

  Status listens(const std::string& endpoint, const std::string& events);
  Status submitted(const std::string& run, std::uint64_t submission, const Value& config);
  Status chosen(const std::string& run, const Value& choice);
  Status changed(const std::string& run, const std::string& state, const std::string& why);
  /// Somebody gives an order, which is carried out after this.
  Status ordered(const std::string& by, const std::string& order, const std::string& subject);
  /// The run is over. Of those that are, the oldest are forgotten.
  Status ended(const std::string& run, const std::string& state, const std::string& why,
               std::int64_t step, std::int64_t steps);

 private:
  HeadJournal(std::shared_ptr<storage::Files> files, EndedBounds bounds)
      : files_(std::move(files)), bounds_(std::move(bounds)) {}
  Status lock(const std::string& folder);
  Status read(const std::string& path);
  Status learn(const Value& record, const std::string& place);
  Status begin();
  Status write(const Value& record);
  void forget_old();
  double now() const;
  std::vector<Value> all() const;

  std::shared_ptr<storage::Files> files_;
  const EndedBounds bounds_;
  std::string path_;
  int lock_ = -1;
  std::uint64_t term_ = 0;
  std::string listened_, published_;
  mutable std::mutex mutex_;
  std::map<std::string, RememberedRun> runs_;
  std::deque<GivenOrder> orders_;
  std::optional<storage::RecordWriter> records_;  // Nothing: the file is to be written anew.
  std::size_t written_ = 0;                       // Records of the file.
};

}  // namespace troupe::apps
