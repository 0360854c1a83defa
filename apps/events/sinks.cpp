#include "apps/events/sinks.h"

#include <unistd.h>

#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

#include "apps/events/file_sink.h"
#include "apps/events/json_sink.h"
#include "apps/events/publisher_sink.h"
#include "apps/events/tensorboard_sink.h"
#include "apps/events/terminal_sink.h"

namespace troupe::apps {
namespace {

/// Passes events on to a function.
class FunctionSink final : public EventSink {
 public:
  explicit FunctionSink(std::function<void(const Value&)> function)
      : function_(std::move(function)) {}

  void event(const Value& event) override { function_(event); }

 private:
  const std::function<void(const Value&)> function_;
};

/// Null if nothing is shown.
std::unique_ptr<EventSink> display_sink(Display display, std::FILE* lines, std::int64_t log_every,
                                        std::int64_t total_steps) {
  using Steps = TerminalSink::Steps;
  switch (display) {
    case Display::json:
      return std::make_unique<JsonSink>();
    case Display::plain:
      return std::make_unique<TerminalSink>(lines, Steps::lines, log_every, total_steps);
    case Display::progress:
      return std::make_unique<TerminalSink>(lines, Steps::progress, log_every, total_steps);
    case Display::nothing:
      return nullptr;
  }
  return nullptr;
}

}  // namespace

Display display_for(const CommonFlags& flags) {
  if (flags.output == "json") return Display::json;
  if (flags.quiet) return Display::nothing;
  if (flags.output == "plain") return Display::plain;
  return isatty(STDERR_FILENO) ? Display::progress : Display::plain;
}

Display display_of_answer(const CommonFlags& flags) {
  const auto display = display_for(flags);
  const bool is_read = display == Display::progress && !isatty(STDOUT_FILENO);
  return is_read ? Display::plain : display;
}

Result<std::unique_ptr<Recorder>> open_recorder(Env& env, storage::Files& files,
                                                const SinkOptions& options) {
  std::vector<std::unique_ptr<EventSink>> sinks;
  auto file = FileSink::open(env, files, options.file);
  if (!file) return file.error();
  sinks.push_back(std::move(*file));
  if (auto shown = display_sink(options.display, stderr, options.log_every, options.total_steps))
    sinks.push_back(std::move(shown));
  if (!options.tensorboard.empty())
    sinks.push_back(std::make_unique<TensorboardSink>(env, files, options.tensorboard));
  if (options.publisher) sinks.push_back(std::make_unique<PublisherSink>(*options.publisher));
  if (options.notify) sinks.push_back(std::make_unique<FunctionSink>(options.notify));
  return std::make_unique<Recorder>(env, std::move(sinks));
}

std::unique_ptr<Recorder> open_display(Env& env, Display display, std::int64_t log_every,
                                       std::int64_t total_steps) {
  std::vector<std::unique_ptr<EventSink>> sinks;
  if (auto shown = display_sink(display, stdout, log_every, total_steps))
    sinks.push_back(std::move(shown));
  return std::make_unique<Recorder>(env, std::move(sinks));
}

}  // namespace troupe::apps
