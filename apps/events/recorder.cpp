#include "apps/events/recorder.h"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <span>

#include "core/json.h"

namespace troupe::apps {
namespace {

/// Formats a number briefly, as in "loss 2.412".
std::string brief(double number, int digits = 4) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*g", digits, number);
  return text;
}

std::string thousands(double number) {
  std::string digits = std::to_string(std::llround(number));
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string duration(double seconds) {
  const auto whole = std::llround(seconds);
  if (whole < 60) return std::to_string(whole) + " s";
  if (whole < 3600) return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
  return std::to_string(whole / 3600) + " h " + std::to_string(whole / 60 % 60) + " min";
}

std::string of_gradients(const Value& step) {
  if (step.find("grad_norm")) return "grad norm " + brief(number_in(step, "grad_norm"), 3);
  return "skipped at loss scale " + brief(number_in(step, "loss_scale"), 8);
}

std::string of_skipped(const Value& event) {
  const auto steps = integer_in(event, "skipped_steps");
  if (steps == 0) return {};
  return "; " + std::to_string(steps) + (steps == 1 ? " step was" : " steps were") +
         " skipped because gradients overflowed in fp16";
}

}  // namespace

std::string sentence(const Value& event) {
  const std::string type = text_of(event, "type");
  if (type == "run.state") {
    const std::string why = text_of(event, "why");
    return "run " + text_of(event, "run") + ": " + text_of(event, "state") +
           (why.empty() ? "" : ": " + why) + of_skipped(event);
  }
  if (type == "eval")
    return "step " + text_of(event, "step") + "  validation loss " +
           brief(number_in(event, "loss"), 5);
  if (type == "checkpoint.saved")
    return "step " + text_of(event, "step") + "  saved " + text_of(event, "directory");
  if (type == "warn") return "warning: " + text_of(event, "text");
  if (type == "plan.changed") {
    const double gain = number_in(event, "gain");
    return "placement: " + text_of(event, "why") +
           (gain > 0 ? "; steps should take " + brief(100 * gain, 2) + " % less time" : "");
  }
  if (type == "run.chosen") {
    const std::string stages = text_of(event, "stages");
    return "precision " + text_of(event, "why") +
           (stages == "[]" ? "" : "; stage boundaries at layers " + stages) + "\n" +
           text_of(event, "samples") + " samples in a step: " + text_of(event, "micro_batches") +
           " micro-batches of " + text_of(event, "micro") + ", distributed over " +
           text_of(event, "replicas") +
           (text_of(event, "replicas") == "1" ? " replica" : " replicas");
  }
  if (type == "node.unfit")
    return text_of(event, "node") + " is not used: " + text_of(event, "why");
  if (type == "run.recovered")
    return "recovered in " + brief(number_in(event, "seconds"), 3) + " s from " +
           (text_of(event, "from") == "memory" ? "memory; " : "the newest checkpoint; ") +
           text_of(event, "redone") +
           (integer_in(event, "redone") == 1 ? " step repeated" : " steps repeated");
  if (type == "stage.stalled")
    return "stalled: " + text_of(event, "who") + ": " + text_of(event, "what");
  if (type == "run.changed") return text_of(event, "set") + " after step " + text_of(event, "step");
  return type + " " + to_json(event);
}

Recorder::Display Recorder::display_for(const CommonFlags& flags) {
  if (flags.output == "json") return Display::json;
  if (flags.quiet) return Display::nothing;
  if (flags.output == "plain") return Display::plain;
  return isatty(STDERR_FILENO) ? Display::progress : Display::plain;
}

Result<std::unique_ptr<Recorder>> Recorder::open(storage::Files& files, const std::string& events,
                                                 Display display, std::int64_t log_every,
                                                 std::int64_t total_steps,
                                                 std::int64_t most_bytes) {
  auto file = files.append(events);
  if (!file) return Error{file.error().text + "; every run records its events there"};
  std::unique_ptr<Recorder> recorder(
      new Recorder(std::move(*file), display, log_every, total_steps));
  recorder->files_ = &files;
  recorder->path_ = events;
  recorder->most_bytes_ = most_bytes;
  if (const auto there = files.inspect(events))
    recorder->bytes_ = static_cast<std::int64_t>(there->bytes);
  recorder->end_ = end_of_events(events);
  return recorder;
}

std::unique_ptr<Recorder> Recorder::shown(Display display, std::int64_t log_every,
                                          std::int64_t total_steps) {
  return std::unique_ptr<Recorder>(new Recorder(nullptr, display, log_every, total_steps));
}

Recorder::~Recorder() {
  if (line_open_) std::fputc('\n', stderr);
}

Value Recorder::record(const Value& event) {
  Value told = told_now(event);
  const std::string line = to_json(told) + "\n";
  const std::lock_guard lock(mutex_);
  keep(told, line);
  if (display_ == Display::json) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
  } else if (display_ != Display::nothing) {
    show(event);
  }
  return told;
}

/// Writes each event to the system at once, so that a killed process loses none.
void Recorder::keep(const Value& told, const std::string& line) {
  if (!events_) return;
  std::string text = line;
  if (lost_ > 0) {
    Value note = event("warn", text_of(told, "run"));
    note.set("text", "lost events: the disk refused " + std::to_string(lost_) +
                         (lost_ == 1 ? " event" : " events") + " before this one");
    note.set("lost_events", lost_);
    // The disk may have written a part of a line, so this begins on a new line.
    text = "\n" + to_json(told_now(std::move(note))) + "\n" + line;
  }
  const bool is_kept = events_->write(std::as_bytes(std::span(text.data(), text.size()))).ok();
  lost_ = is_kept ? 0 : lost_ + 1;
  if (!is_kept) return;
  bytes_ += static_cast<std::int64_t>(text.size());
  end_ += static_cast<std::int64_t>(text.size());
  if (bytes_ >= most_bytes_) cut(text_of(told, "run"));
}

/// Replaces the older file by this one and begins a new file. If the disk refuses that, the present
/// file continues to grow.
void Recorder::cut(const std::string& run) {
  if (!files_->rename(path_, older_events(path_))) return;
  auto file = files_->append(path_);
  if (!file) {
    (void)files_->rename(older_events(path_), path_);
    return;
  }
  events_ = std::move(*file);
  // Counts partial writes that failed, which `end_` does not contain yet.
  if (const auto older = files_->inspect(older_events(path_)))
    end_ += static_cast<std::int64_t>(older->bytes) - bytes_;
  const std::string first = to_json(told_now(cut_event(run, end_))) + "\n";
  bytes_ = static_cast<std::int64_t>(first.size());
  if (events_->write(std::as_bytes(std::span(first.data(), first.size()))).ok()) end_ += bytes_;
}

void Recorder::say(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (display_ == Display::plain || display_ == Display::progress) print(text);
}

void Recorder::show(const Value& event) {
  if (text_of(event, "type") == "step")
    show_step(event);
  else
    print(sentence(event));
}

void Recorder::show_step(const Value& event) {
  const auto step = static_cast<std::int64_t>(number_in(event, "step"));
  const double seconds = number_in(event, "seconds");
  seconds_ = seconds_ == 0 ? seconds : 0.9 * seconds_ + 0.1 * seconds;
  std::string line = "step " + std::to_string(step) + "  loss " +
                     brief(number_in(event, "loss"), 5) + "  " + of_gradients(event) + "  lr " +
                     brief(number_in(event, "lr"), 3) + "  " + thousands(number_in(event, "rate")) +
                     (event.find("tokens") ? " tokens/s" : " samples/s");
  if (display_ == Display::plain) {
    if (step % log_every_ == 0 || step == total_steps_) print(line);
    return;
  }
  line += "  " + brief(number_in(event, "memory") / 1048576, 4) + " MiB  " +
          duration(seconds_ * static_cast<double>(total_steps_ - step)) + " left";
  std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
  std::fflush(stderr);
  line_open_ = true;
}

void Recorder::print(const std::string& line) {
  if (line_open_) std::fputs("\r\x1b[K", stderr);
  line_open_ = false;
  std::fprintf(stderr, "%s\n", line.c_str());
}

Value event(transport::MessageName type, const std::string& run) {
  Value value;
  value.set("type", type.text());
  value.set("run", run);
  return value;
}

Value told_now(Value event) {
  if (event.find("time")) return event;
  const auto now = std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
  event.set("time", static_cast<double>(now.time_since_epoch().count()) / 1e6);
  return event;
}

}  // namespace troupe::apps
