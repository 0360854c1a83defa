// `troupe top`: shows the nodes and runs of a head and refreshes them.

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <string>

#include "apps/client/head_tables.h"
#include "apps/client/screen.h"
#include "apps/client/which_head.h"
#include "apps/command.h"
#include "apps/machine/signals.h"
#include "core/json.h"
#include "core/threads/event_fd.h"
#include "core/units.h"

namespace troupe::apps {
namespace {

using Clock = std::chrono::steady_clock;

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

/// Draws until a person asks to end. Returns nothing then, or why there is nothing to draw.
std::optional<Error> draw(HeadClient& client, std::chrono::milliseconds every) {
  EventFd bell;
  ring_on_signals(bell);
  const Screen screen;
  client.tell_waits([&](std::chrono::seconds waited) {
    screen.show_foot("no answer from the head for " + std::to_string(waited.count()) +
                     " s; the tables are from before");
  });
  const std::string foot = client.endpoint() + "   q ends";
  for (Speeds speeds; !signal_came();) {
    const auto status = client.ask("status", Value::Map{});
    if (!status) return signal_came() ? std::nullopt : std::optional(status.error());
    // Runs come first, since there may be more nodes than rows.
    const auto now = speeds.look(*status, Clock::now());
    screen.show(runs_table(*status, now) + "\n" + nodes_table(*status), foot);
    if (screen.wait(bell, every) == Screen::end_key) return {};
  }
  return {};
}

ExitCode top(const TopArguments& arguments, const CommonFlags& flags) {
  auto client = arguments.head.dial(flags);
  if (!client) return no_head(client.error());
  if (flags.output == "auto" && isatty(STDOUT_FILENO) == 1) {
    const auto every = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * arguments.every));
    const auto lost = draw(**client, every);
    return lost ? no_head(*lost) : ExitCode::done;
  }
  const auto status = (*client)->ask("status", Value::Map{});
  if (!status) return no_head(status.error());
  const std::string text = flags.output == "json"
                               ? to_json(*status) + "\n"
                               : nodes_table(*status) + "\n" + runs_table(*status);
  std::fputs(text.c_str(), stdout);
  return ExitCode::done;
}

}  // namespace

void add_top(Program& program) {
  auto [command, arguments] = add_command(
      program, program.app, "top", "watch the runs and nodes of a head until q or Ctrl-C", top);
  arguments.head.add_to(*command);
  command->add_option("--every", arguments.every, "seconds between refreshes (default: 1)")
      ->check(CLI::Range(0.1, 3600.0));
}

}  // namespace troupe::apps
