#include "apps/page/metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/nodes/node_messages.h"
#include "apps/client/head_tables.h"
#include "apps/run/version.h"
#include "core/json.h"

namespace troupe::apps {
namespace {

/// Writes metrics: the values of one name, each with its labels.
class Metrics {
 public:
  void begin(const std::string& name, const std::string& help, const char* kind = "gauge") {
    name_ = name;
    text_ += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + kind + "\n";
  }
  void add(const std::string& labels, double number, const char* part = "") {
    text_ +=
        name_ + part + (labels.empty() ? "" : "{" + labels + "}") + " " + shortest(number) + "\n";
  }
  std::string take() { return std::move(text_); }

 private:
  std::string name_, text_;
};

std::string label(const std::string& name, std::string_view value) {
  std::string text = name + "=\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c == '\n' ? ' ' : c;
  }
  return text + "\"";
}

struct GpuMetric {
  const char* name;
  const char* help;
  std::optional<double> (*figure)(const actors::GpuReading&);
};

template <class Number>
std::optional<double> times(std::optional<Number> number, double scale) {
  return number ? std::optional(static_cast<double>(*number) * scale) : std::nullopt;
}

using Gpu = actors::GpuReading;
constexpr GpuMetric gpu_metrics[] = {
    {"busy", "Share of time in which the GPU was computing.",
     [](const Gpu& gpu) { return gpu.busy; }},
    {"memory_used_bytes", "GPU memory in use.", [](const Gpu& gpu) { return times(gpu.used, 1); }},
    {"memory_bytes", "Total GPU memory.", [](const Gpu& gpu) { return times(gpu.memory, 1); }},
    {"power_watts", "Power draw of the GPU.", [](const Gpu& gpu) { return gpu.watts; }},
    {"clock_hertz", "Clock rate of the GPU's compute units.",
     [](const Gpu& gpu) { return times(gpu.megahertz, 1e6); }},
    {"temperature_celsius", "Temperature of the GPU.",
     [](const Gpu& gpu) { return times(gpu.celsius, 1); }},
};

/// Adds the GPU metrics. If no node has reported a GPU, it adds not even their names.
void add_gpus(Metrics& metrics, const Value::List& nodes) {
  std::vector<std::pair<std::string, actors::GpuReading>> gpus;  // Readings by label text.
  for (const auto& node : nodes)
    for (auto& gpu : gpus_of(node)) {
      auto labels = label("node", text_of(node, "name")) + "," +
                    label("gpu", std::to_string(gpu.number)) + "," +
                    label("name", gpu.name.value_or(""));
      gpus.emplace_back(std::move(labels), std::move(gpu));
    }
  if (gpus.empty()) return;
  for (const auto& metric : gpu_metrics) {
    metrics.begin(std::string("troupe_gpu_") + metric.name, metric.help);
    for (const auto& [labels, gpu] : gpus)
      if (const auto figure = metric.figure(gpu)) metrics.add(labels, *figure);
  }
  metrics.begin("troupe_gpu_slowed", "1 for each reason why the GPU's clock is throttled.");
  for (const auto& [labels, gpu] : gpus)
    for (const auto& reason : gpu.slowed_by.value_or(std::vector<std::string>()))
      metrics.add(labels + "," + label("by", reason), 1);
  metrics.begin("troupe_gpu_fault", "1 if the GPU does not answer.");
  for (const auto& [labels, gpu] : gpus) metrics.add(labels, gpu.fault ? 1 : 0);
}

void add_nodes(Metrics& metrics, const Value::List& nodes) {
  metrics.begin("troupe_nodes", "Connected nodes.");
  metrics.add("", static_cast<double>(nodes.size()));
  const auto of_nodes = [&](const std::string& name, const std::string& help, auto figure) {
    metrics.begin("troupe_node_" + name, help);
    for (const auto& node : nodes) metrics.add(label("node", text_of(node, "name")), figure(node));
  };
  const auto if_known = [&](const std::string& name, const std::string& help, const char* key) {
    metrics.begin("troupe_node_" + name, help);
    for (const auto& node : nodes)
      if (const Value* figure = node.find(key); figure && figure->is_number())
        metrics.add(label("node", text_of(node, "name")), figure->number());
  };
  if_known("busy", "Share of the time of the node's processors in use, by whatever programs.",
           "busy");
  if_known("memory_used_bytes", "Memory in use on the node's machine, by whatever programs.",
           "memory_used");
  of_nodes("cores", "Cores that the node may use.",
           [](const Value& node) { return number_in(node, "cores"); });
  of_nodes("memory_bytes", "Memory that the node may use.",
           [](const Value& node) { return number_in(node, "memory"); });
  of_nodes("cordoned", "1 if the node is cordoned.",
           [](const Value& node) { return text_of(node, "cordoned") == "true" ? 1.0 : 0.0; });
  add_gpus(metrics, nodes);
}

/// Adds what each straggler costs. Without one it adds not even the name.
void add_stragglers(Metrics& metrics, const Value::List& runs) {
  bool has_begun = false;
  for (const auto& run : runs)
    for (const auto& one : list_in(run, "stragglers")) {
      if (!std::exchange(has_begun, true))
        metrics.begin("troupe_straggler_share",
                      "Longer time of a slow device or link as a share of a step's time.");
      metrics.add(label("run", text_of(run, "name")) + "," + label("node", text_of(one, "node")) +
                      "," + label("device", text_of(one, "device")) + "," +
                      label("cause", text_of(one, "cause")),
                  number_in(one, "share"));
    }
}

void add_runs(Metrics& metrics, const Value::List& runs) {
  const auto of_runs = [&](const std::string& key, const std::string& help) {
    metrics.begin("troupe_run_" + key, help);
    for (const auto& run : runs)
      if (const Value* number = run.find(key); number && number->is_number())
        metrics.add(label("run", text_of(run, "name")), number->number());
  };
  of_runs("step", "Completed steps of the run.");
  of_runs("steps", "Configured steps of the run.");
  of_runs("loss", "Loss of the last step.");
  of_runs("goodput", "Share of time spent in steps that count.");
  add_stragglers(metrics, runs);
  constexpr std::array<const char*, 6> states = {"starting", "running", "paused",
                                                 "done",     "stopped", "failed"};
  metrics.begin("troupe_run_state", "1 for the state that the run is in, 0 for the others.");
  for (const auto& run : runs)
    for (const auto* state : states)
      metrics.add(label("run", text_of(run, "name")) + "," + label("state", state),
                  text_of(run, "state") == state ? 1 : 0);
}

using Numbers = std::map<std::string, RunNumbers>;

void add_histogram(Metrics& metrics, const std::string& labels, const Histogram& histogram) {
  std::int64_t up_to = 0;
  for (std::size_t i = 0; i < histogram.bounds.size(); ++i) {
    up_to += histogram.counts[i];
    metrics.add(labels + "," + label("le", shortest(histogram.bounds[i])),
                static_cast<double>(up_to), "_bucket");
  }
  metrics.add(labels + ",le=\"+Inf\"", static_cast<double>(histogram.count), "_bucket");
  metrics.add(labels, histogram.sum, "_sum");
  metrics.add(labels, static_cast<double>(histogram.count), "_count");
}

void add_durations(Metrics& metrics, const Numbers& numbers) {
  const auto of_runs = [&](const std::string& name, const std::string& help,
                           Histogram RunNumbers::*member) {
    metrics.begin("troupe_run_" + name + "_seconds", help, "histogram");
    for (const auto& [run, of_run] : numbers)
      add_histogram(metrics, label("run", run), of_run.*member);
  };
  of_runs("step", "Duration of steps.", &RunNumbers::step_seconds);
  of_runs("recovery", "Time from a failure until the run has one step more than before it.",
          &RunNumbers::recovery_seconds);
  of_runs("save", "Time until a checkpoint was complete, while training went on.",
          &RunNumbers::save_seconds);
  const bool has_waits =
      std::ranges::any_of(numbers, [](const auto& one) { return !one.second.link_waits.empty(); });
  if (!has_waits) return;
  metrics.begin("troupe_run_link_wait_seconds",
                "Time in a step in which devices of a node waited for tensors of another node.",
                "histogram");
  for (const auto& [run, of_run] : numbers)
    for (const auto& [ends, histogram] : of_run.link_waits)
      add_histogram(
          metrics,
          label("run", run) + "," + label("from", ends.first) + "," + label("to", ends.second),
          histogram);
}

void add_numbers(Metrics& metrics, const Value::List& runs, const Numbers& numbers) {
  const auto count = [&](const std::string& name, const std::string& help,
                         std::int64_t RunNumbers::*member) {
    metrics.begin("troupe_run_" + name + "_total", help + " since the head began.", "counter");
    for (const auto& [run, of_run] : numbers)
      metrics.add(label("run", run), static_cast<double>(of_run.*member));
  };
  count("steps_done", "Steps done, repeated ones too,", &RunNumbers::steps);
  count("steps_repeated", "Steps that recoveries repeated", &RunNumbers::repeated);
  count("seen", "Tokens that were trained on, or samples if there are no tokens,",
        &RunNumbers::seen);
  count("recoveries", "Failures that it has recovered from", &RunNumbers::recoveries);
  count("checkpoints", "Checkpoints saved", &RunNumbers::checkpoints);
  count("warnings", "Warnings", &RunNumbers::warnings);
  const auto gauge = [&](const std::string& name, const std::string& help,
                         std::optional<double> RunNumbers::*member) {
    metrics.begin("troupe_run_" + name, help);
    for (const auto& [run, of_run] : numbers)
      if (of_run.*member) metrics.add(label("run", run), *(of_run.*member));
  };
  gauge("rate", "Tokens, or samples if there are none, per second in the last step.",
        &RunNumbers::rate);
  gauge("gradient_norm", "Norm of the gradient in the last step.", &RunNumbers::grad_norm);
  gauge("learning_rate", "Learning rate of the last step.", &RunNumbers::lr);
  gauge("bubble", "Share of time in which devices waited in the last step.", &RunNumbers::bubble);
  gauge("memory_bytes", "Greatest memory in use by the devices of the run.", &RunNumbers::memory);
  gauge("checkpoint_timestamp_seconds", "When the newest checkpoint was complete.",
        &RunNumbers::saved_at);
  metrics.begin("troupe_run_left_seconds", "Time left at the pace of the last steps.");
  for (const auto& run : runs) {
    const auto found = numbers.find(text_of(run, "name"));
    if (found == numbers.end() || !found->second.pace || text_of(run, "state") != "running")
      continue;
    const double left = number_in(run, "steps") - number_in(run, "step");
    metrics.add(label("run", found->first), std::max(0.0, left) * *found->second.pace);
  }
  add_durations(metrics, numbers);
}

/// Adds what Prometheus knows of processes by these names.
void add_process(Metrics& metrics) {
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  double pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  metrics.begin("process_resident_memory_bytes", "Memory of the head process.");
  metrics.add("", resident * page);
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  metrics.begin("process_cpu_seconds_total", "Processor time of the head process.", "counter");
  metrics.add("", seconds(used.ru_utime) + seconds(used.ru_stime));
  std::error_code failed;
  const std::filesystem::directory_iterator open("/proc/self/fd", failed);
  if (failed) return;
  metrics.begin("process_open_fds", "Open file descriptors of the head process.");
  metrics.add("", static_cast<double>(std::distance(begin(open), end(open))));
}

}  // namespace

std::string metrics_of(const Value& status, const Numbers& numbers) {
  Metrics metrics;
  metrics.begin("troupe_build_info", "1; the labels tell the version.");
  metrics.add(label("version", TROUPE_VERSION) + "," + label("commit", commit), 1);
  const auto& runs = list_in(status, "runs");
  add_nodes(metrics, list_in(status, "nodes"));
  add_runs(metrics, runs);
  add_numbers(metrics, runs, numbers);
  add_process(metrics);
  return metrics.take();
}

}  // namespace troupe::apps
