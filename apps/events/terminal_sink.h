#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include "apps/events/event_sink.h"
#include "apps/events/step_text.h"

namespace troupe::apps {

/// Shows events to a person. The progress line and what is no event go to stderr.
class TerminalSink final : public EventSink {
 public:
  /// Either each step that is due has its line, or one line shows the newest step and stays below
  /// the other events. That line fits the terminal: a longer one would leave a part behind.
  enum class Steps { lines, progress };

  /// `events` gets a line for each event, except the progress line. With lines, every `log_every`th
  /// step is due, and step `total_steps`.
  TerminalSink(std::FILE* events, Steps steps, std::int64_t log_every, std::int64_t total_steps)
      : events_(events), steps_(steps), log_every_(log_every), total_steps_(total_steps) {}

  void event(const Value& event) override;
  void say(const std::string& text) override { print(stderr, text); }
  void flush() override { std::fflush(events_); }
  void close() override;

 private:
  StepText& text_of_run(const Value& event);
  void show_step(const Value& event);
  void print(std::FILE* stream, const std::string& line);

  std::FILE* const events_;
  const Steps steps_;
  const std::int64_t log_every_;
  const std::int64_t total_steps_;
  std::map<std::string, StepText> texts_;  // The key is the run's name.
  bool line_open_ = false;                 // A progress line has no end of line yet.
};

}  // namespace troupe::apps
