// `troupe top`: shows the nodes and runs of a head and refreshes them, or shows them once.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <deque>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "apps/client/event_reader.h"
#include "apps/client/head_tables.h"
#include "apps/client/links_text.h"
#include "apps/client/run_screen.h"
#include "apps/client/screen.h"
#include "apps/client/stacks_text.h"
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
  bool once = false;
};

/// Steps per second, over the last seconds.
class Speeds {
 public:
  const std::map<std::string, double>& look(const Value& status, Clock::time_point now) {
    // A key may lead to another look at once, which would measure nothing.
    constexpr auto least = std::chrono::milliseconds(50);
    const Value* runs = status.find("runs");
    if (!runs || !runs->list() || now - last_ < least) return speeds_;
    std::map<std::string, double> speeds;
    std::map<std::string, Looks> looks;
    for (const auto& run : *runs->list()) {
      const auto name = text_of(run, "name");
      const double step = run.find("step")->number();
      auto& mine = looks[name] = std::move(looks_[name]);
      // A run goes back when it recovers, and another one may have its name.
      if (!mine.empty() && step < mine.back().step) mine.clear();
      mine.push_back({now, step});
      while (mine.size() > 2 && now - mine.front().at > window) mine.pop_front();
      const double time = in_seconds(now - mine.front().at);
      speeds[name] = time > 0 ? (step - mine.front().step) / time : 0;
    }
    last_ = now;
    looks_ = std::move(looks);
    return speeds_ = std::move(speeds);
  }

 private:
  static constexpr auto window = std::chrono::seconds(10);
  struct Look {
    Clock::time_point at;
    double step = 0;
  };
  using Looks = std::deque<Look>;

  Clock::time_point last_;
  std::map<std::string, Looks> looks_;
  std::map<std::string, double> speeds_;
};

/// The order of runs on the screen. A key leads from one to the next.
enum class Sort { name, state, step, loss, speed };
constexpr std::array<const char*, 5> sort_names = {"name", "state", "step", "loss", "speed"};

using RunSpeeds = std::map<std::string, double>;

Value::List runs_of(const Value& status) {
  const Value* runs = status.find("runs");
  return runs && runs->list() ? *runs->list() : Value::List{};
}

/// Sorts the runs. The farthest, the fastest and those with the least loss come first.
Value::List sorted(Value::List runs, Sort by, const RunSpeeds& speeds) {
  const auto rank = [&](const Value& run) -> double {
    if (by == Sort::step) return -number_in(run, "step");
    if (by == Sort::speed) {
      const auto speed = speeds.find(text_of(run, "name"));
      return speed == speeds.end() ? 0 : -speed->second;
    }
    const Value* loss = by == Sort::loss ? run.find("loss") : nullptr;
    return loss && loss->is_number() ? loss->number() : std::numeric_limits<double>::max();
  };
  std::ranges::stable_sort(runs, {}, [](const Value& run) { return text_of(run, "name"); });
  if (by == Sort::state)
    std::ranges::stable_sort(runs, {}, [](const Value& run) { return text_of(run, "state"); });
  else if (by != Sort::name)
    std::ranges::stable_sort(runs, {}, rank);
  return runs;
}

/// The picture on the screen: all runs and nodes, or the page of one run.
class View {
 public:
  explicit View(HeadClient& client) : client_(client) {}

  /// Handles a key. Returns false if it ends the program.
  bool press(char key, const Value& status, const RunSpeeds& speeds) {
    const auto runs = sorted(runs_of(status), sort_, speeds);
    const auto open =
        std::ranges::find(runs, run_, [](const Value& run) { return text_of(run, "name"); });
    const auto place = open - runs.begin(), count = std::ssize(runs);
    if (key == Screen::end_key) return false;
    if (key == 's' && run_.empty())
      sort_ = static_cast<Sort>((static_cast<int>(sort_) + 1) % sort_names.size());
    if (key == 'b') asked_.empty() ? show({}) : asked_.clear();
    if (key == 'c') ask_for_links();
    if (count == 0) return true;
    const bool is_open = !run_.empty() && place < count;
    if (key == '\n' || key == '\r') show(text_of(runs[0], "name"));
    if (key == 's' && is_open) ask_for_stacks();
    if (key == 'n' && is_open) show(text_of(runs[(place + 1) % count], "name"));
    if (key == 'p' && is_open) show(text_of(runs[(place + count - 1) % count], "name"));
    return true;
  }

  std::string text(Value status, const RunSpeeds& speeds, const TextForm& form) {
    if (!asked_.empty()) return asked_;
    auto runs = sorted(runs_of(status), sort_, speeds);
    for (const auto& run : runs)
      if (!run_.empty() && text_of(run, "name") == run_) return page(run, speeds, form);
    status.set("runs", std::move(runs));
    // Runs come first, since there may be more nodes than rows.
    return runs_table(status, form, speeds) + "\n" + nodes_table(status, form);
  }

  /// Returns what the keys do. A narrow terminal shows the first ones.
  std::string keys() const {
    if (!asked_.empty()) return "q ends   b back";
    if (!run_.empty()) return "q ends   b back   s stacks   c carriers   n p other runs";
    return std::string("q ends   s sort: ") + sort_names[static_cast<std::size_t>(sort_)] +
           "   Enter run   c carriers";
  }

 private:
  void show(std::string run) {
    if (run == run_) return;
    run_ = std::move(run);
    screen_ = {};
    asked_.clear();
    reader_.reset();
  }

  /// Asks the head about the open run, or about all nodes. Shows the answer until `b` is pressed.
  void ask(transport::MessageName type, const std::string& title,
           const std::function<std::string(const Value&)>& text_of_answer) {
    Value body = Value::Map{};
    if (!run_.empty()) body.set("run", run_);
    const auto answer = client_.ask(type, std::move(body));
    asked_ = title + "\n\n" + (answer ? text_of_answer(*answer) : answer.refusal().text + "\n");
  }
  void ask_for_stacks() {
    constexpr std::size_t most_frames = 6;
    ask("stacks", run_ + ": stacks",
        [](const Value& answer) { return stacks_text(answer, most_frames); });
  }
  void ask_for_links() {
    ask("probe", run_.empty() ? "ways between all nodes" : run_ + ": ways between its nodes",
        links_text);
  }

  std::string page(const Value& run, const RunSpeeds& speeds, const TextForm& form) {
    const Value* began = run.find("began");
    if (!reader_) {
      reader_.emplace(client_, run_);
      if (began && began->integer() && *began->integer() > 0) reader_->begin_at(*began->integer());
    }
    // A head that is away is reported by the next question.
    (void)reader_->read([this](const Value& event) { screen_.add(event); });
    const auto speed = speeds.find(run_);
    return screen_.page(run, speed == speeds.end() ? 0 : speed->second, form);
  }

  HeadClient& client_;
  Sort sort_ = Sort::name;
  std::string run_;    // The run whose page is shown; empty: none.
  std::string asked_;  // The answer that a person has asked for; empty: none is shown.
  RunScreen screen_;
  std::optional<EventReader> reader_;
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
  View view(client);
  for (Speeds speeds; !signal_came();) {
    const auto status = client.ask("status", Value::Map{});
    if (!status) return signal_came() ? std::nullopt : std::optional(status.error());
    const auto now = speeds.look(*status, Clock::now());
    screen.show(view.text(*status, now, screen.form()), client.endpoint() + "   " + view.keys());
    const auto key = screen.wait(bell, every);
    if (key && !view.press(*key, *status, now)) return {};
  }
  return {};
}

ExitCode top(const TopArguments& arguments, const CommonFlags& flags) {
  auto client = arguments.head.dial(flags);
  if (!client) return no_head(client.error());
  if (flags.output == "auto" && !arguments.once && has_screen(stdout)) {
    const auto every = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * arguments.every));
    const auto lost = draw(**client, every);
    return lost ? no_head(*lost) : ExitCode::done;
  }
  const auto status = (*client)->ask("status", Value::Map{});
  if (!status) return no_head(status.error());
  const auto form = form_of(stdout);
  const std::string text = flags.output == "json"
                               ? to_json(*status) + "\n"
                               : runs_table(*status, form) + "\n" + nodes_table(*status, form);
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
  command->add_flag("--once", arguments.once,
                    "print runs and nodes once, as without a terminal; with --output json, the "
                    "status as JSON");
}

}  // namespace troupe::apps
