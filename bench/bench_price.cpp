// Measures what a run pays to be ready for losses: copies of its state in nodes' memory, a ledger
// on disk, heartbeats, and sums in an order that no plan changes. Two nodes with one core each
// train gpt-small. Each part is a share of what their cores can compute meanwhile, taken from the
// CPU time of threads, because step times drift by more than all of this.
//
//     ./dev bench price [STEPS]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "bench/live_cluster.h"
#include "bench/thread_times.h"
#include "config/load.h"
#include "config/model_kinds.h"
#include "models/arithmetic.h"
#include "models/train/stage.h"

namespace troupe::bench {
namespace {

constexpr int nodes = 2;
constexpr int first_steps = 6;  // The first copies allocate memory.
constexpr double goal = 3;      // Percent.
constexpr const char* base = TROUPE_ROOT "/config/gpt-small.toml";

std::string config_with(int copies) {
  return std::string("extends = \"") + base + R"("
name = "bench"
[pipeline]
stages = 2
schedule = "zb-h1"
[checkpoint]
every = "1000000 steps"
[train]
steps = 1000000
eval_every = 1000000
[elastic]
copies = )" +
         std::to_string(copies) + "\n";
}

using Times = std::map<std::string, double>;

/// CPU time during some steps, as shares of what two cores can compute.
struct Shares {
  Times nodes;  // Keyed by thread name.
  double head = 0;
  double step = 0;  // Seconds per step.

  double of(const std::string& thread) const {
    const auto found = nodes.find(thread);
    return found == nodes.end() ? 0 : found->second;
  }
};

double sum_of(const Times& times) {
  double sum = 0;
  for (const auto& [name, seconds] : times) sum += seconds;
  return sum;
}

Times of_nodes(const LiveCluster& cluster) {
  Times times;
  for (int node = 0; node < nodes; ++node)
    for (const auto& [name, seconds] : thread_times(cluster.process_of("n" + std::to_string(node))))
      times[name] += seconds;
  return times;
}

std::optional<Shares> measure(int copies, int steps) {
  LiveCluster cluster({.nodes = nodes, .config = config_with(copies)});
  auto& story = cluster.story();
  const auto reach = [&](std::int64_t step) {
    const auto is_there = [&](const Value&) { return story.step() >= step; };
    return story.find(is_there, std::chrono::minutes(10)).has_value();
  };
  if (!cluster.submit() || !reach(first_steps)) return {};
  const double began = now();
  const Times before = of_nodes(cluster);
  const double head_before = sum_of(thread_times(cluster.process_of_head()));
  if (!reach(first_steps + steps)) return {};
  const double seconds = now() - began;
  Shares shares{of_nodes(cluster), sum_of(thread_times(cluster.process_of_head())) - head_before,
                seconds / steps};
  for (auto& [name, time] : shares.nodes) {
    const auto known = before.find(name);
    time = (time - (known == before.end() ? 0 : known->second)) / (seconds * nodes);
  }
  shares.head /= seconds * nodes;
  return shares;
}

/// Returns the seconds that adding up the gradient sums of a step's groups takes.
std::optional<double> time_of_sums() {
  const auto loaded = config::load({base});
  if (!loaded) return std::fprintf(stderr, "%s", loaded.error().text.c_str()), std::nullopt;
  const auto& config = loaded->config;
  const auto model = config::find_model_kind(config.model.kind)->build(config.model.options);
  if (!model) return std::fprintf(stderr, "%s\n", model.error().text.c_str()), std::nullopt;
  MemoryPool memory;
  Stream stream(memory);
  const models::Stage stage(*model, {0, static_cast<int>(model->units.size())}, {});
  std::vector<Tensor> left, right;
  for (auto* sums : {&left, &right})
    for (const auto& parameter : stage.parameters())
      sums->push_back(models::filled(stream, parameter.shape, parameter.type, 1));
  std::vector<double> seconds;
  for (int round = 0; round < 9; ++round) {
    const auto began = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < left.size(); ++i) models::add(stream, left[i], right[i]);
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  const auto micro_batches = config::micro_batches(config, *config.batch.micro);
  return median(seconds) * (config::reduction_groups(config, micro_batches) - 1);
}

void print(const char* what, double share) { std::printf("  %-46s %6.2f %%\n", what, 100 * share); }

int main_of(int steps) {
  const auto ready = measure(2, steps), plain = measure(1, steps);
  const auto sums = time_of_sums();
  if (!ready || !plain || !sums) return 1;
  std::printf("gpt-small, two nodes with a core each, %d steps of %.2f s\n", steps, ready->step);
  for (const auto& [name, share] : ready->nodes)
    if (share > 0) print(("threads: " + name).c_str(), share);
  const double kept = ready->of("keeping");
  // Both nodes copy weights and two moments, which is `kept`. Handing over copies the two moments
  // once more: a third of `kept`.
  const double given = kept / 3;
  const double carried = std::max(0.0, ready->of("channels") - plain->of("channels"));
  const double heartbeats = ready->of("heart") + ready->of("control");
  const double exact = *sums / (ready->step * nodes);
  std::printf("of which being ready takes\n");
  print("copies in memory: kept", kept);
  print("copies in memory: moments given (reckoned)", given);
  print("copies in memory: carried", carried);
  print("heartbeats, and all other messages of nodes", heartbeats);
  print("ledger, and all else that the head does", ready->head);
  print("sums in a tree (measured by themselves)", exact);
  const double all = kept + given + carried + heartbeats + ready->head + exact;
  print("together", all);
  std::printf("  (goal: at most %.0f %%)\n", goal);
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int count, char** words) {
  return troupe::bench::main_of(count > 1 ? std::max(1, std::atoi(words[1])) : 30);
}
