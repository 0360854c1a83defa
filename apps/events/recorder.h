#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "apps/console.h"
#include "apps/events/event_backlog.h"
#include "core/result.h"
#include "core/value.h"
#include "storage/files/files.h"
#include "transport/wire/message_types.h"

namespace troupe::apps {

/// Records the events of a run. Every event goes to the run's events.jsonl. The terminal shows what
/// the user chose: a JSON object per event, plain lines, or a progress line with important events
/// above it. Any thread may record.
class Recorder {
 public:
  enum class Display { json, plain, progress, nothing };

  /// Returns the display for the flags. "auto" means a progress line on a terminal and plain lines
  /// elsewhere.
  static Display display_for(const CommonFlags& flags);

  /// Appends to the file `events`, in whole lines. Events that the disk refuses are lost and
  /// counted; a warning with the count precedes the next event that is written. Plain step lines
  /// are printed every `log_every` steps. `files` outlives the recorder. Once the file has
  /// `most_bytes`, it is cut as told_events.h describes.
  static Result<std::unique_ptr<Recorder>> open(storage::Files& files, const std::string& events,
                                                Display display, std::int64_t log_every,
                                                std::int64_t total_steps,
                                                std::int64_t most_bytes = most_events_file_bytes);
  /// Returns a recorder that only shows events.
  static std::unique_ptr<Recorder> shown(Display display, std::int64_t log_every,
                                         std::int64_t total_steps);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Records an event: a map that begins with `type` and `run`. Returns it with the time.
  Value record(const Value& event);

  /// Prints a line for people only: what the data is, where results are.
  void say(const std::string& text);

 private:
  Recorder(std::unique_ptr<storage::FileWriter> events, Display display, std::int64_t log_every,
           std::int64_t total_steps)
      : events_(std::move(events)),
        display_(display),
        log_every_(log_every),
        total_steps_(total_steps) {}

  void keep(const Value& told, const std::string& line);
  void cut(const std::string& run);

  void show(const Value& event);
  void show_step(const Value& event);
  void print(const std::string& line);

  std::mutex mutex_;
  std::unique_ptr<storage::FileWriter> events_;  // Null: events are only shown.
  storage::Files* files_ = nullptr;              // Null likewise.
  std::string path_;
  std::int64_t most_bytes_ = 0;
  std::int64_t bytes_ = 0;  // The size of the file.
  std::int64_t end_ = 0;    // The place in the events at the file's end.
  std::int64_t lost_ = 0;   // Events lost since the last one that was written.
  Display display_;
  std::int64_t log_every_;
  std::int64_t total_steps_;
  bool line_open_ = false;  // A progress line is shown that has no end of line yet.
  double seconds_ = 0;      // The smoothed time of a step, for the time left.
};

/// Describes an event other than a step for a person.
std::string sentence(const Value& event);

/// Makes an event that has only its type and its run.
Value event(transport::MessageName type, const std::string& run);
/// Adds `time` (seconds since 1970) to an event without one.
Value told_now(Value event);

}  // namespace troupe::apps
