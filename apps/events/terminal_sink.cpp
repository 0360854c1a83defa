#include "apps/events/terminal_sink.h"

#include <cstdio>
#include <string>

#include "apps/events/event_text.h"

namespace troupe::apps {

void TerminalSink::event(const Value& event) {
  if (text_in(event, "type") == "step")
    show_step(event);
  else
    print(sentence(event));
}

void TerminalSink::close() {
  if (line_open_) std::fputc('\n', stderr);
}

void TerminalSink::show_step(const Value& event) {
  const auto step = static_cast<std::int64_t>(number_in(event, "step"));
  const double seconds = number_in(event, "seconds");
  seconds_ = seconds_ == 0 ? seconds : 0.9 * seconds_ + 0.1 * seconds;
  const std::string line = step_line(event);
  if (steps_ == Steps::lines) {
    if (step % log_every_ == 0 || step == total_steps_) print(line);
    return;
  }
  const double left = seconds_ * static_cast<double>(total_steps_ - step);
  std::fprintf(stderr, "\r%s%s\x1b[K", line.c_str(), step_outlook(event, left).c_str());
  std::fflush(stderr);
  line_open_ = true;
}

void TerminalSink::print(const std::string& line) {
  if (line_open_) std::fputs("\r\x1b[K", stderr);
  line_open_ = false;
  std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace troupe::apps
