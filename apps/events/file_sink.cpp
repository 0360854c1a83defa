#include "apps/events/file_sink.h"

#include <span>

#include "apps/events/event.h"
#include "core/json.h"

namespace troupe::apps {

Result<std::unique_ptr<FileSink>> FileSink::open(Env& env, storage::Files& files,
                                                 const std::string& path, std::int64_t most_bytes) {
  auto file = files.append(path);
  if (!file) return Error{file.error().text + "; every run records its events there"};
  std::unique_ptr<FileSink> sink(new FileSink(env, files, path, most_bytes, std::move(*file)));
  if (const auto there = files.inspect(path))
    sink->bytes_ = static_cast<std::int64_t>(there->bytes);
  sink->end_ = end_of_events(files, path);
  return sink;
}

void FileSink::event(const Value& event) {
  std::string text = to_json(event) + "\n";
  if (lost_ > 0) {
    Value note = apps::event("warn", text_of(event, "run"));
    note.set("text", "lost events: the disk refused " + std::to_string(lost_) +
                         (lost_ == 1 ? " event" : " events") + " before this one");
    note.set("lost_events", lost_);
    // The disk may have taken a part of a line: the warning begins on a new line.
    text = "\n" + to_json(told_at(env_.wall_time(), std::move(note))) + "\n" + text;
  }
  const bool is_written = file_->write(std::as_bytes(std::span(text.data(), text.size()))).ok();
  lost_ = is_written ? 0 : lost_ + 1;
  if (!is_written) return;
  bytes_ += static_cast<std::int64_t>(text.size());
  end_ += static_cast<std::int64_t>(text.size());
  if (bytes_ >= most_bytes_) cut(text_of(event, "run"));
}

/// Renames the file to that of older events and begins a new one. If the disk refuses, the file
/// grows on.
void FileSink::cut(const std::string& run) {
  if (!files_.rename(path_, older_events(path_))) return;
  auto file = files_.append(path_);
  if (!file) {
    (void)files_.rename(older_events(path_), path_);
    return;
  }
  file_ = std::move(*file);
  // The size also has the parts of lines from writes that failed.
  if (const auto older = files_.inspect(older_events(path_)))
    end_ += static_cast<std::int64_t>(older->bytes) - bytes_;
  const std::string first = to_json(told_at(env_.wall_time(), cut_event(run, end_))) + "\n";
  bytes_ = static_cast<std::int64_t>(first.size());
  if (file_->write(std::as_bytes(std::span(first.data(), first.size()))).ok()) end_ += bytes_;
}

}  // namespace troupe::apps
