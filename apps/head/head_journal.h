#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/env.h"
#include "core/result.h"
#include "core/value.h"
#include "storage/files/claim.h"
#include "storage/files/files.h"
#include "storage/files/records.h"
#include "transport/wire/fields.h"

namespace troupe::apps {

/// The numbers of a run's last step, as far as they are known.
struct LastStep {
  std::optional<double> loss;
  std::optional<double> goodput;
};

/// The journal's data about a run.
struct RememberedRun {
  std::uint64_t submission = 0;  // The id of the message that submitted the run.
  Value config;                  // Null for a run that has ended.
  std::string state;             // A state of RunStanding; "stopping" if somebody asked for that.
  std::string why;
  Value choice;                      // The RunChoice of the run; null: nothing was chosen yet.
  std::int64_t step = 0, steps = 0;  // The completed steps and all steps, of a run that has ended.
  LastStep last;                     // The last step, of a run that has ended.
  double ended = 0;  // The time of its end in seconds since 1970; 0: it has not ended.
};

/// An order that a user gave.
struct GivenOrder {
  static constexpr std::string_view type = "order";
  double time = 0;      // Seconds since 1970.
  std::string by;       // The user: "user 1000", or the host and the beginning of the key.
  std::string order;    // The message type: "run.stop".
  std::string subject;  // The run or node that the order affects.

  static constexpr auto fields() {
    return std::tuple(transport::required("time", &GivenOrder::time),
                      transport::required("by", &GivenOrder::by),
                      transport::required("order", &GivenOrder::order),
                      transport::optional("subject", &GivenOrder::subject));
  }
};

/// How many ended runs a head remembers, and for how long.
struct EndedBounds {
  std::size_t most = 1000;  // Bounds the number of orders too.
  std::chrono::seconds age = std::chrono::hours(24 * 30);
};

/// The memory of a head across restarts: its term, its addresses and its runs. A function that
/// records something returns once it is on disk. If that fails, it was not recorded. Any thread.
class HeadJournal {
 public:
  /// Begins a new life with a higher term. Fails if another head uses the folder. The files
  /// outlive the journal.
  static Result<std::unique_ptr<HeadJournal>> open(const storage::Claimant& head,
                                                   storage::Files& files, const std::string& folder,
                                                   const EndedBounds& bounds = {});
  HeadJournal(const HeadJournal&) = delete;
  HeadJournal& operator=(const HeadJournal&) = delete;

  std::uint64_t term() const { return term_; }
  /// Return the addresses for requests and events; empty in the first life.
  const std::string& listened() const { return listened_; }
  const std::string& published() const { return published_; }
  std::map<std::string, RememberedRun> runs() const;
  bool knows(const std::string& run) const;

  /// Returns the newest orders, oldest first.
  std::deque<GivenOrder> orders() const;

  Status listens(const std::string& endpoint, const std::string& events);
  Status submitted(const std::string& run, std::uint64_t submission, const Value& config);
  Status chosen(const std::string& run, const Value& choice);
  Status changed(const std::string& run, const std::string& state, const std::string& why);
  /// Records an order before it is carried out.
  Status ordered(const std::string& by, const std::string& order, const std::string& subject);
  /// Records that a run has ended. Forgets the oldest ended runs.
  Status ended(const std::string& run, const std::string& state, const std::string& why,
               std::int64_t step, std::int64_t steps, const LastStep& last = {});

 private:
  HeadJournal(Env& env, storage::Files& files, const EndedBounds& bounds)
      : env_(env), files_(files), bounds_(bounds) {}
  Status read(const std::string& path);
  Status learn(const Value& record, const std::string& place);
  Status begin();
  Status write(const Value& record);
  void forget_old();
  double now() const;
  std::vector<Value> all() const;

  Env& env_;
  storage::Files& files_;
  const EndedBounds bounds_;
  std::string path_;
  std::unique_ptr<storage::FileLock> lock_;  // Keeps other heads out of the folder.
  std::uint64_t term_ = 0;
  std::string listened_, published_;
  mutable std::mutex mutex_;
  std::map<std::string, RememberedRun> runs_;
  std::deque<GivenOrder> orders_;
  std::optional<storage::RecordWriter> records_;  // Empty: the file must be rewritten.
  std::size_t written_ = 0;                       // Records in the file.
};

}  // namespace troupe::apps
