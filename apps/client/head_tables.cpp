#include "apps/client/head_tables.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "apps/client/table.h"
#include "apps/events/event_text.h"
#include "apps/events/run_end.h"
#include "apps/hosts/gpu_checks.h"
#include "core/json.h"
#include "schedules/plan/plan_format.h"

namespace troupe::apps {
namespace {

template <class... Words>
std::string line(const char* format, Words... words) {
  char text[512];
  std::snprintf(text, sizeof text, format, words...);
  return text;
}

/// Formats a number of a run, or "-" if it is unknown.
std::string known(const Value& run, const char* key, const char* format, double times) {
  const Value* number = run.find(key);
  return number && number->is_number() ? line(format, times * number->number()) : "-";
}

/// Returns "3.1/23.5 GiB": what is in use, if known, and the total.
std::string memory_text(const Value& node) {
  constexpr double gib = 1 << 30;
  const auto total = line("%.1f GiB", number_in(node, "memory") / gib);
  const Value* used = node.find("memory_used");
  return used && used->is_number() ? line("%.1f/", used->number() / gib) + total : total;
}

/// Adds the measured time of a step. For a run that goes on it adds why the run has its plan, with
/// the expected times.
void add_plan(Table& table, const Value& run) {
  const bool has_ended = has_run_ended(text_of(run, "state"));
  const Value* seconds = run.find("step_seconds");
  if (seconds && seconds->is_number())
    table.add_note((has_ended ? "a step took " : "a step takes ") +
                   schedules::show(schedules::Seconds(seconds->number())));
  if (const auto plan = text_of(run, "plan_why"); !plan.empty() && !has_ended) table.add_note(plan);
}

/// Formats a duration: "12m", "3h20m", "21d07h".
std::string time_left(double seconds) {
  const auto minutes = static_cast<long>(seconds / 60);
  if (minutes < 1) return line("%.0fs", seconds);
  if (minutes < 60) return line("%ldm", minutes);
  const auto hours = minutes / 60;
  return hours < 100 ? line("%ldh%02ldm", hours, minutes % 60)
                     : line("%ldd%02ldh", hours / 24, hours % 24);
}

}  // namespace

const Value::List& list_in(const Value& answer, const char* key) {
  static const Value::List none;
  const Value* list = answer.find(key);
  return list && list->list() ? *list->list() : none;
}

std::vector<actors::GpuReading> gpus_of(const Value& node) {
  std::vector<actors::GpuReading> gpus;
  for (const auto& one : list_in(node, "gpus"))
    if (auto gpu = transport::from_value<actors::GpuReading>(one, "gpu"))
      gpus.push_back(std::move(*gpu));
  return gpus;
}

std::string nodes_table(const Value& answer, const TextForm& form) {
  const auto& nodes = list_in(answer, "nodes");
  if (nodes.empty()) return "no nodes\n";
  constexpr auto right = Table::Align::right;
  constexpr std::size_t cordoned_column = 7;
  Table table({{"node"},
               {"host"},
               {"pid", right},
               {"cores", right},
               {"busy", right, 5},
               {"memory", right, 13},
               {"precision"},
               {""}});
  for (const auto& node : nodes) {
    const bool is_cordoned = text_of(node, "cordoned") == "true";
    table.add({text_of(node, "name"), text_of(node, "host"), text_of(node, "pid"),
               text_of(node, "cores"), known(node, "busy", "%.0f %%", 100), memory_text(node),
               text_of(node, "precision"), is_cordoned ? "cordoned" : ""});
    table.colour(cordoned_column, Tone::attention);
    for (const auto& gpu : gpus_of(node))
      table.add_note("GPU " + std::to_string(gpu.number) + ": " + to_text(gpu));
    for (const auto& one : list_in(node, "stragglers"))
      table.add_note("slow in run " + text_of(one, "run") + ": " + straggler_text(one),
                     Tone::attention);
  }
  return table.text(form);
}

namespace {

constexpr std::size_t name_width = 16;  // Longer names may be shortened for other columns.

using SpeedOfRun = std::map<std::string, double>;

/// The room for rows of a table of runs. If there is less, a row leaves something out.
enum class Room {
  for_all,
  for_numbers,  // The places of runs are below their rows.
  for_most,     // There is no goodput, either.
};

Table table_of(const Value::List& runs, const SpeedOfRun& speeds, Room room) {
  const auto keeps_samples = [](const Value& run) {
    return text_of(run, "exactness") == "samples";
  };
  // Most runs keep all bits.
  const bool has_exactness = std::ranges::any_of(runs, keeps_samples);
  const bool has_speeds = !speeds.empty();
  constexpr auto right = Table::Align::right;
  std::size_t digits = 0;
  for (const auto& run : runs) digits = std::max(digits, text_of(run, "steps").size());
  // A table that is drawn again and again has room for the longest values.
  const auto least = [&](std::size_t width) { return has_speeds ? width : 0; };
  std::vector<Table::Column> columns{{"run"},
                                     {"state", Table::Align::left, least(8)},
                                     {"step", right, least(2 * digits + 1)},
                                     {"loss", right, least(7)}};
  if (room != Room::for_most) columns.push_back({"goodput", right, least(7)});
  if (has_exactness) columns.push_back({"exactness"});
  if (has_speeds) columns.insert(columns.end(), {{"steps/s", right, 7}, {"left", right, 6}});
  if (room == Room::for_all) columns.push_back({"where"});
  Table table(std::move(columns));
  for (const auto& run : runs) {
    const auto name = text_of(run, "name"), why = text_of(run, "why");
    std::vector<std::string> cells{name, text_of(run, "state"),
                                   text_of(run, "step") + "/" + text_of(run, "steps"),
                                   known(run, "loss", "%.4f", 1)};
    if (room != Room::for_most) cells.push_back(known(run, "goodput", "%.1f %%", 100));
    if (has_exactness) cells.push_back(text_of(run, "exactness"));
    if (const auto speed = speeds.find(name); speed != speeds.end() && speed->second > 0)
      cells.insert(cells.end(),
                   {line("%.2f", speed->second),
                    time_left((number_in(run, "steps") - number_in(run, "step")) / speed->second)});
    else if (has_speeds)
      cells.insert(cells.end(), {"", ""});
    const auto where = why.empty() ? text_of(run, "where") : why;
    if (room == Room::for_all) cells.push_back(where);
    const auto tone = tone_of_state(text_of(run, "state"));
    table.add(std::move(cells));
    table.colour(1, tone);
    if (room != Room::for_all && !where.empty())
      table.add_note(where, why.empty() ? Tone::plain : tone);
    if (why.empty()) add_plan(table, run);
    const auto recoveries = static_cast<long>(number_in(run, "recoveries"));
    if (recoveries > 0)
      table.add_note((recoveries == 1 ? "recovered once: "
                                      : line("recovered %ld times; the last time: ", recoveries)) +
                     text_of(run, "recovered"));
    for (const auto& one : list_in(run, "stragglers"))
      table.add_note(sentence(one), Tone::attention);
  }
  return table;
}

}  // namespace

std::string runs_table(const Value& answer, const TextForm& form, const SpeedOfRun& speeds) {
  const auto& runs = list_in(answer, "runs");
  if (runs.empty()) return "no runs\n";
  const auto all = table_of(runs, speeds, Room::for_all);
  if (all.width() <= form.columns) return all.text(form);
  std::size_t longest = 0;
  for (const auto& run : runs) longest = std::max(longest, width_of(text_of(run, "name")));
  const auto spare = longest - std::min(longest, name_width);
  const auto numbers = table_of(runs, speeds, Room::for_numbers);
  if (numbers.width() <= form.columns + spare) return numbers.text(form);
  return table_of(runs, speeds, Room::for_most).text(form);
}

}  // namespace troupe::apps
