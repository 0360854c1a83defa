#include "apps/client/head_tables.h"

#include <cstdio>

#include "apps/events/event_text.h"
#include "apps/hosts/gpu_checks.h"
#include "core/json.h"

namespace troupe::apps {
namespace {

const Value::List* list_in(const Value& answer, const char* key) {
  const Value* list = answer.find(key);
  return list && list->list() && !list->list()->empty() ? list->list() : nullptr;
}

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

std::vector<actors::GpuReading> gpus_of(const Value& node) {
  std::vector<actors::GpuReading> gpus;
  if (const auto* list = list_in(node, "gpus"))
    for (const auto& one : *list)
      if (auto gpu = transport::from_value<actors::GpuReading>(one, "gpu"))
        gpus.push_back(std::move(*gpu));
  return gpus;
}

std::string nodes_table(const Value& answer) {
  const auto* nodes = list_in(answer, "nodes");
  if (!nodes) return "no nodes\n";
  std::string text = line("%-20s %-20s %8s %6s %10s %-12s %s\n", "node", "host", "pid", "cores",
                          "memory", "precision", "");
  for (const auto& node : *nodes) {
    text += line("%-20s %-20s %8s %6s %6.1f GiB %-12s %s\n", text_of(node, "name").c_str(),
                 text_of(node, "host").c_str(), text_of(node, "pid").c_str(),
                 text_of(node, "cores").c_str(), number_in(node, "memory") / (1 << 30),
                 text_of(node, "precision").c_str(),
                 text_of(node, "cordoned") == "true" ? "cordoned" : "");
    for (const auto& gpu : gpus_of(node))
      text += "    GPU " + std::to_string(gpu.number) + ": " + to_text(gpu) + "\n";
    if (const auto* stragglers = list_in(node, "stragglers"))
      for (const auto& one : *stragglers)
        text += "    slow in run " + text_of(one, "run") + ": " + straggler_text(one) + "\n";
  }
  return text;
}

std::string runs_table(const Value& answer, const std::map<std::string, double>& speeds) {
  const auto* runs = list_in(answer, "runs");
  if (!runs) return "no runs\n";
  std::string text = line("%-24s %-10s %12s %10s %8s %-9s", "run", "state", "step", "loss",
                          "goodput", "exactness");
  if (!speeds.empty()) text += line(" %10s %7s", "steps/s", "left");
  text += "  where\n";
  for (const auto& run : *runs) {
    const auto name = text_of(run, "name"), why = text_of(run, "why");
    text += line("%-24s %-10s %6s/%-5s %10s %8s %-9s", name.c_str(), text_of(run, "state").c_str(),
                 text_of(run, "step").c_str(), text_of(run, "steps").c_str(),
                 known(run, "loss", "%.4f", 1).c_str(),
                 known(run, "goodput", "%.1f %%", 100).c_str(), text_of(run, "exactness").c_str());
    if (const auto speed = speeds.find(name); speed != speeds.end() && speed->second > 0)
      text += line(
          " %10.2f %7s", speed->second,
          time_left((number_in(run, "steps") - number_in(run, "step")) / speed->second).c_str());
    else if (!speeds.empty())
      text += line(" %10s %7s", "", "");
    text += "  " + (why.empty() ? text_of(run, "where") : why) + "\n";
    const auto recoveries = static_cast<long>(number_in(run, "recoveries"));
    if (recoveries == 1) text += "    recovered once: ";
    if (recoveries > 1) text += line("    recovered %ld times; the last time: ", recoveries);
    if (recoveries > 0) text += text_of(run, "recovered") + "\n";
    if (const auto* stragglers = list_in(run, "stragglers"))
      for (const auto& one : *stragglers) text += "    " + sentence(one) + "\n";
  }
  return text;
}

}  // namespace troupe::apps
