// `troupe top`: shows the nodes and runs of a head and refreshes them.

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <string>

#include "apps/client/head_tables.h"
#include "apps/client/which_head.h"
#include "apps/command.h"
#include "apps/machine/signals.h"
#include "core/json.h"
#include "core/threads/event_fd.h"
#include "core/units.h"

namespace troupe::apps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* clear_screen = "\x1b[H\x1b[2J";

struct TopArguments {
  WhichHead head;
  double every = 1;  // Seconds.
};

/// Steps per second between two looks.
class Speeds {
 public:
  std::map<std::string, double> look(const Value& status, Clock::time_point now) {
    std::map<std::string, double> speeds;
    const Value* runs = status.find("runs");
    if (!runs || !runs->list()) return speeds;
    const double time = in_seconds(now - last_);
    for (const auto& run : *runs->list()) {
      const auto name = text_of(run, "name");
      const double step = run.find("step")->number();
      const auto before = steps_.find(name);
      speeds[name] = before == steps_.end() ? 0 : (step - before->second) / time;
      steps_[name] = step;
    }
    last_ = now;
    return speeds;
  }

 private:
  Clock::time_point last_;
  std::map<std::string, double> steps_;
};

ExitCode top(const TopArguments& arguments, const CommonFlags& flags) {
  auto client = arguments.head.dial(flags);
  if (!client) return no_head(client.error());
  const bool is_json = flags.output == "json";
  const bool is_screen = flags.output == "auto" && isatty(STDOUT_FILENO) == 1;
  const auto every = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * arguments.every));
  EventFd bell;
  ring_on_signals(bell);
  if (is_screen)
    (*client)->tell_waits([](std::chrono::seconds waited) {
      std::printf("\r\x1b[Kno answer from the head for %lld s; the tables are from before",
                  static_cast<long long>(waited.count()));
      std::fflush(stdout);
    });
  for (Speeds speeds;; bell.wait_for(every)) {
    if (signal_came()) return ExitCode::done;
    const auto status = (*client)->ask("status", Value::Map{});
    if (!status && signal_came()) return ExitCode::done;
    if (!status) return no_head(status.error());
    const auto now = speeds.look(*status, Clock::now());
    const std::string text =
        is_json ? to_json(*status) + "\n" : nodes_table(*status) + "\n" + runs_table(*status, now);
    std::fputs(((is_screen ? clear_screen : "") + text).c_str(), stdout);
    std::fflush(stdout);
    if (!is_screen) return ExitCode::done;
  }
}

}  // namespace

void add_top(Program& program) {
  auto [command, arguments] = add_command(program, program.app, "top",
                                          "watch the nodes and runs of a head until Ctrl-C; print "
                                          "them once if the output is not a terminal",
                                          top);
  arguments.head.add_to(*command);
  command->add_option("--every", arguments.every, "seconds between refreshes (default: 1)")
      ->check(CLI::Range(0.1, 3600.0));
}

}  // namespace troupe::apps
