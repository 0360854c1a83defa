#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "apps/console.h"
#include "apps/events/recorder.h"
#include "core/result.h"
#include "storage/files/files.h"
#include "transport/control/publisher.h"

namespace troupe::apps {

/// How a command shows events: as JSON, as lines, as lines with a progress line below them, or not
/// at all.
enum class Display { json, plain, progress, nothing };

/// Returns what the user asked for. "auto" is a progress line on a terminal, and plain lines
/// elsewhere.
Display display_for(const CommonFlags& flags);
/// Returns the same for a command that was asked for the events and prints them to stdout. There is
/// no progress line if a file or another program reads them.
Display display_of_answer(const CommonFlags& flags);

/// The sinks for events of a run.
struct SinkOptions {
  std::string file;  // The run's events.jsonl.
  Display display = Display::nothing;
  std::int64_t log_every = 1;                     // Plain lines show every so many steps,
  std::int64_t total_steps = 0;                   // and the last one.
  std::string tensorboard = {};                   // A folder for TensorBoard; empty: none.
  transport::Publisher* publisher = nullptr;      // Null: the events are not published.
  std::function<void(const Value&)> notify = {};  // Receives the events as well; may be empty.
};

/// Opens a recorder for a process that leads a run. The environment, `files` and the
/// publisher outlive it. It shows lines on stderr.
Result<std::unique_ptr<Recorder>> open_recorder(Env& env, storage::Files& files,
                                                const SinkOptions& options);
/// Opens a recorder that only shows events, on stdout.
std::unique_ptr<Recorder> open_display(Env& env, Display display, std::int64_t log_every,
                                       std::int64_t total_steps);

}  // namespace troupe::apps
