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

namespace troupe::apps {

/// Tells what happens in a run. Every event goes to the run's events.jsonl; the terminal shows what
/// the user asked for: one JSON object a line, plain lines, or a progress line with what matters
/// above it. Any thread may record.
class Recorder {
 public:
  enum class Display { json, plain, progress, nothing };

  /// "auto" is a progress line on a terminal and plain lines elsewhere.
  static Display display_for(const CommonFlags& flags);

  /// Appends to the file `events`, whole lines only. Events that the disk refuses are lost, and
  /// counted: the first one after them that it takes is preceded by a warning that says how many.
  /// Plain step lines come every `log_every` steps. `files` outlives it. The file is cut as
  /// told_events.h says once it has `most_bytes`.
  static Result<std::unique_ptr<Recorder>> open(storage::Files& files, const std::string& events,
                                                Display display, std::int64_t log_every,
                                                std::int64_t total_steps,
                                                std::int64_t most_bytes = most_events_file_bytes);
  /// One that shows events, and keeps none.
  static std::unique_ptr<Recorder> shown(Display display, std::int64_t log_every,
                                         std::int64_t total_steps);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// A map that begins with `type` and `run`, as interface and documentation list them. Gives it
  /// as it was told, with the time.
  Value record(const Value& event);

  /// A line for a person only: what the data is, where results lie.
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
  std::unique_ptr<storage::FileWriter> events_;  // Null: none is kept.
  storage::Files* files_ = nullptr;              // Likewise.
  std::string path_;
  std::int64_t most_bytes_ = 0;
  std::int64_t bytes_ = 0;  // Of the file,
  std::int64_t end_ = 0;    // and the place at its end.
  std::int64_t lost_ = 0;   // Since the last event that was kept.
  Display display_;
  std::int64_t log_every_;
  std::int64_t total_steps_;
  bool line_open_ = false;  // A progress line stands without its end.
  double seconds_ = 0;      // Of a step, smoothed: for the time left.
};

/// What a person reads of an event other than a step.
std::string sentence(const Value& event);

/// An event's beginning.
Value event(const std::string& type, const std::string& run);
/// With `time`, where it has none yet: seconds since 1970, for a person and for who measures.
Value told_now(Value event);

}  // namespace troupe::apps
