#pragma once

#include <cstdint>

#include "apps/events/event_sink.h"

namespace troupe::apps {

/// Shows events to a person, on stderr.
class TerminalSink final : public EventSink {
 public:
  /// Either each step that is due has its line, or one line shows the newest step and stays below
  /// the other events.
  enum class Steps { lines, progress };

  /// With lines, every `log_every`th step is due, and step `total_steps`.
  TerminalSink(Steps steps, std::int64_t log_every, std::int64_t total_steps)
      : steps_(steps), log_every_(log_every), total_steps_(total_steps) {}

  void event(const Value& event) override;
  void say(const std::string& text) override { print(text); }
  void close() override;

 private:
  void show_step(const Value& event);
  void print(const std::string& line);

  const Steps steps_;
  const std::int64_t log_every_;
  const std::int64_t total_steps_;
  bool line_open_ = false;  // A progress line has no end of line yet.
  double seconds_ = 0;      // The smoothed time of a step, to estimate the time left.
};

}  // namespace troupe::apps
