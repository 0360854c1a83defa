#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/value.h"
#include "storage/files.h"
#include "storage/records.h"

namespace troupe::apps {

/// A run as a head remembers it.
struct RememberedRun {
  std::uint64_t submission = 0;  // The id of the message that gave it.
  Value config;
  std::string state;  // As RunStanding has it; "stopping" where it was asked to.
  std::string why;
  Value choice;  // What was chosen for it, as RunChoice has it; null: nothing yet.
};

/// What a head knows from one of its lives to the next: how many there were, where it listens, and
/// its runs. What is told to it is on the disk when it returns; where that fails it was never told.
/// Any thread.
class HeadJournal {
 public:
  /// Begins a new life, with a higher term. An error where another head lives in that folder.
  static Result<std::unique_ptr<HeadJournal>> open(
      const std::string& folder, std::shared_ptr<storage::Files> files = storage::disk_files());
  ~HeadJournal();
  HeadJournal(const HeadJournal&) = delete;
  HeadJournal& operator=(const HeadJournal&) = delete;

  std::uint64_t term() const { return term_; }
  /// Where it listened, and published; empty in its first life.
  const std::string& listened() const { return listened_; }
  const std::string& published() const { return published_; }
  std::map<std::string, RememberedRun> runs() const;

  Status listens(const std::string& endpoint, const std::string& events);
  Status submitted(const std::string& run, std::uint64_t submission, const Value& config);
  Status chosen(const std::string& run, const Value& choice);
  Status changed(const std::string& run, const std::string& state, const std::string& why);

 private:
  explicit HeadJournal(std::shared_ptr<storage::Files> files) : files_(std::move(files)) {}
  Status lock(const std::string& folder);
  Status read(const std::string& path);
  Status learn(const Value& record, const std::string& place);
  Status begin(const std::string& path);
  Status write(const Value& record);
  std::vector<Value> all() const;

  std::shared_ptr<storage::Files> files_;
  int lock_ = -1;
  std::uint64_t term_ = 0;
  std::string listened_, published_;
  mutable std::mutex mutex_;
  std::map<std::string, RememberedRun> runs_;
  std::optional<storage::RecordWriter> records_;
};

}  // namespace troupe::apps
