#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "apps/events/event_backlog.h"
#include "apps/events/event_sink.h"
#include "core/env.h"
#include "core/result.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// Appends each event to a run's events.jsonl, whole lines only. An event that the disk refuses is
/// lost and counted. The next event that the disk takes is preceded by a warning with the count.
class FileSink final : public EventSink {
 public:
  /// The environment and `files` outlive the sink. Once the file has `most_bytes`, it is cut
  /// (event_backlog.h).
  static Result<std::unique_ptr<FileSink>> open(Env& env, storage::Files& files,
                                                const std::string& path,
                                                std::int64_t most_bytes = most_events_file_bytes);

  /// Hands the event to the system at once: a killed process loses no event that was written.
  void event(const Value& event) override;
  void close() override { file_.reset(); }

 private:
  FileSink(Env& env, storage::Files& files, std::string path, std::int64_t most_bytes,
           std::unique_ptr<storage::FileWriter> file)
      : env_(env),
        files_(files),
        path_(std::move(path)),
        most_bytes_(most_bytes),
        file_(std::move(file)) {}

  void cut(const std::string& run);

  Env& env_;
  storage::Files& files_;
  const std::string path_;
  const std::int64_t most_bytes_;
  std::unique_ptr<storage::FileWriter> file_;
  std::int64_t bytes_ = 0;  // The size of the file.
  std::int64_t end_ = 0;    // The place at its end, among all events of the run.
  std::int64_t lost_ = 0;   // Events since the last one that was written.
};

}  // namespace troupe::apps
