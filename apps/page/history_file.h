#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "apps/events/run_history.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// The history of a run, read from its event file as that grows. For one thread at a time.
class HistoryFile {
 public:
  /// `path` names the event file, which need not exist yet.
  HistoryFile(storage::Files& files, std::string path) : files_(files), path_(std::move(path)) {}

  /// Reads what was appended, at most `most_pages` pages of 60 KiB. Returns whether it is at the
  /// end.
  bool read_on(int most_pages);

  /// Returns RunHistory::to_json(). It is whole if everything was read.
  const std::string& json();

 private:
  void take(std::string_view line);

  storage::Files& files_;
  const std::string path_;
  std::int64_t next_ = 0;  // The place up to which events were read.
  std::string begun_;      // The beginning of a line that continues on the next page.
  bool is_whole_ = false;
  RunHistory history_;
  std::string json_;
  bool has_changed_ = true;
};

}  // namespace troupe::apps
