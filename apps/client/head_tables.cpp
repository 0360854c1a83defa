#include "apps/client/head_tables.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "apps/client/table.h"
#include "apps/events/event_text.h"
#include "apps/hosts/gpu_checks.h"
#include "core/json.h"

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

/// Formats a duration: "12m", "3h20m".
std::string time_left(double seconds) {
  const auto minutes = static_cast<long>(seconds / 60);
  if (minutes < 1) return line("%.0fs", seconds);
  return minutes < 60 ? line("%ldm", minutes) : line("%ldh%02ldm", minutes / 60, minutes % 60);
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

std::string nodes_table(const Value& answer) {
  const auto& nodes = list_in(answer, "nodes");
  if (nodes.empty()) return "no nodes\n";
  constexpr auto right = Table::Align::right;
  Table table({{"node"},
               {"host"},
               {"pid", right},
               {"cores", right},
               {"memory", right},
               {"precision"},
               {""}});
  for (const auto& node : nodes) {
    table.add({text_of(node, "name"), text_of(node, "host"), text_of(node, "pid"),
               text_of(node, "cores"), line("%.1f GiB", number_in(node, "memory") / (1 << 30)),
               text_of(node, "precision"), text_of(node, "cordoned") == "true" ? "cordoned" : ""});
    for (const auto& gpu : gpus_of(node))
      table.add_note("GPU " + std::to_string(gpu.number) + ": " + to_text(gpu));
    for (const auto& one : list_in(node, "stragglers"))
      table.add_note("slow in run " + text_of(one, "run") + ": " + straggler_text(one));
  }
  return table.text();
}

std::string runs_table(const Value& answer, const std::map<std::string, double>& speeds) {
  const auto& runs = list_in(answer, "runs");
  if (runs.empty()) return "no runs\n";
  const auto keeps_samples = [](const Value& run) {
    return text_of(run, "exactness") == "samples";
  };
  // Most runs keep all bits.
  const bool has_exactness = std::ranges::any_of(runs, keeps_samples);
  const bool has_speeds = !speeds.empty();
  constexpr auto right = Table::Align::right;
  std::vector<Table::Column> columns{
      {"run"}, {"state"}, {"step", right}, {"loss", right}, {"goodput", right}};
  if (has_exactness) columns.push_back({"exactness"});
  if (has_speeds) columns.insert(columns.end(), {{"steps/s", right}, {"left", right}});
  columns.push_back({"where"});
  Table table(std::move(columns));
  for (const auto& run : runs) {
    const auto name = text_of(run, "name"), why = text_of(run, "why");
    std::vector<std::string> cells{
        name, text_of(run, "state"), text_of(run, "step") + "/" + text_of(run, "steps"),
        known(run, "loss", "%.4f", 1), known(run, "goodput", "%.1f %%", 100)};
    if (has_exactness) cells.push_back(text_of(run, "exactness"));
    if (const auto speed = speeds.find(name); speed != speeds.end() && speed->second > 0)
      cells.insert(cells.end(),
                   {line("%.2f", speed->second),
                    time_left((number_in(run, "steps") - number_in(run, "step")) / speed->second)});
    else if (has_speeds)
      cells.insert(cells.end(), {"", ""});
    cells.push_back(why.empty() ? text_of(run, "where") : why);
    table.add(std::move(cells));
    if (const auto plan = text_of(run, "plan_why"); why.empty() && !plan.empty())
      table.add_note(plan);
    const auto recoveries = static_cast<long>(number_in(run, "recoveries"));
    if (recoveries > 0)
      table.add_note((recoveries == 1 ? "recovered once: "
                                      : line("recovered %ld times; the last time: ", recoveries)) +
                     text_of(run, "recovered"));
    for (const auto& one : list_in(run, "stragglers")) table.add_note(sentence(one));
  }
  return table.text();
}

}  // namespace troupe::apps
