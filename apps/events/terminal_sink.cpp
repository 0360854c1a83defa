#include "apps/events/terminal_sink.h"

#include <cstddef>
#include <cstdio>
#include <string>

#include "apps/events/event_text.h"
#include "apps/events/terminal_width.h"
#include "core/text.h"

namespace troupe::apps {
namespace {

constexpr std::size_t usual_columns = 80;

}  // namespace

void TerminalSink::event(const Value& event) {
  const std::string type = text_in(event, "type");
  if (type == "step") return show_step(event);
  // For those who look for a cause: a terminal shows what came of it.
  if (type == "decision") return;
  if (type == "run.state") text_of_run(event).stand_still();
  print(events_, sentence(event));
}

void TerminalSink::close() {
  if (line_open_) std::fputc('\n', stderr);
}

StepText& TerminalSink::text_of_run(const Value& event) {
  return texts_.try_emplace(text_in(event, "run"), total_steps_).first->second;
}

void TerminalSink::show_step(const Value& event) {
  auto& text = text_of_run(event);
  text.add(event);
  if (steps_ == Steps::lines) {
    const auto step = integer_in(event, "step");
    if (step % log_every_ == 0 || step == total_steps_) print(events_, text.line());
    return;
  }
  // The cursor stands behind the text: many terminals wrap if the last column is filled.
  std::fprintf(stderr, "\r%s\x1b[K",
               text.line(columns_of(stderr).value_or(usual_columns) - 1).c_str());
  std::fflush(stderr);
  line_open_ = true;
}

void TerminalSink::print(std::FILE* stream, const std::string& line) {
  if (line_open_) std::fputs("\r\x1b[K", stderr);
  line_open_ = false;
  // Files and other programs get each event on a line.
  const auto columns = columns_of(stream);
  std::fprintf(stream, "%s\n", (columns ? wrapped(line, *columns) : line).c_str());
}

}  // namespace troupe::apps
