// Measures what a pipeline costs in two node processes instead of one: the same run on the same two
// cores in one process, over shared memory and over TCP. Runs are interleaved. A rate is the median
// over all steps but the first of each run. A ratio is the median of the ratios within each round,
// with minimum and maximum.
//
//     ./dev bench cluster [ROUNDS] ["gpt-small, 2 stages"]

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "bench/child.h"
#include "bench/figures.h"
#include "storage/files/temporary_folder.h"

namespace troupe::bench {
namespace {

namespace fs = std::filesystem;

constexpr double goal = 0.97;

struct Place {
  const char* name;
  std::vector<std::string> words;
  std::vector<double> seconds = {};
  std::vector<double> rates = {};  // Relative to one process, by round, since machines drift.
};

struct Setting {
  const char* name;
  const char* config;
  int steps;
  double tokens;  // Tokens in a step.
};

ChildOrder order_for(const Setting& setting, const Place& place,
                     const std::vector<std::string>& plan, const std::string& program) {
  ChildOrder order{
      {program, "train", std::string(TROUPE_ROOT "/config/") + setting.config, "--output", "json"},
      {},
      2};
  std::vector<std::string> keys = {"name=bench",
                                   "train.steps=" + std::to_string(setting.steps),
                                   "precision.compute=fp32",
                                   "optimizer.schedule.total_steps=1000",
                                   "checkpoint.every=1000000 steps",
                                   "checkpoint.keep=1"};
  keys.insert(keys.end(), plan.begin(), plan.end());
  for (const auto& key : keys) order.command.insert(order.command.end(), {"--set", key});
  order.command.insert(order.command.end(), place.words.begin(), place.words.end());
  return order;
}

/// Returns the mean. Only some steps make copies, so a median would not show their cost.
double mean(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

bool measure(const Setting& setting, const std::string& how, const std::vector<std::string>& plan,
             int rounds, const std::string& program) {
  std::vector<Place> places = {{"one process", {"--set", "train.threads=2"}},
                               {"two, no copies", {"--nodes", "2", "--set", "elastic.copies=1"}},
                               {"two, shared memory", {"--nodes", "2"}},
                               {"two, TCP", {"--nodes", "2", "--carrier", "tcp"}}};
  for (int round = 0; round < rounds; ++round) {
    double one = 0;
    for (auto& place : places) {
      const auto ran = run_child(order_for(setting, place, plan, program));
      if (!ran || ran->exit_status != 0)
        return std::fprintf(stderr, "error: the run in %s has failed\n", place.name), false;
      const auto seconds = step_seconds(ran->lines);
      if (one == 0) one = median(seconds);
      place.rates.push_back(one / median(seconds));
      std::ranges::copy(seconds, std::back_inserter(place.seconds));
    }
  }
  std::printf("\n%s, %s\n", setting.name, how.c_str());
  for (const auto& place : places)
    std::printf("  %-20s %8.0f tokens/s  %.3f  (%.3f to %.3f)\n", place.name,
                setting.tokens / median(place.seconds), median(place.rates),
                std::ranges::min(place.rates), std::ranges::max(place.rates));
  std::printf("  copies in memory cost %.1f %% of a step\n",
              100 * (mean(places[2].seconds) / mean(places[1].seconds) - 1));
  return true;
}

int run(int rounds, const std::string& only) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string program = fs::read_symlink("/proc/self/exe").parent_path() / "../apps/troupe";
  const auto folder = storage::TemporaryFolder::make();
  if (!folder) return std::fprintf(stderr, "error: %s\n", folder.error().text.c_str()), 1;
  fs::current_path(folder->path());
  std::printf("Rates of two node processes to one process, 2 cores, %d rounds (goal: %.2f)\n",
              rounds, goal);
  const std::vector<std::string> stages = {"pipeline.stages=2", "pipeline.schedule=zb-h1"};
  const std::vector<std::string> replicas = {"pipeline.stages=1", "pipeline.replicas=2"};
  // Enough steps that the first copies, which allocate memory, hardly count.
  const Setting gpt_small{"gpt-small", "gpt-small.toml", 8, 8192};
  const Setting gpt_tiny{"gpt-tiny", "gpt-tiny.toml", 30, 2048};
  bool good = true;
  for (const auto& setting : {gpt_small, gpt_tiny})
    for (const auto& [how, plan] :
         {std::pair("2 stages, zb-h1", stages), std::pair("2 replicas", replicas)})
      if (only.empty() || (std::string(setting.name) + ", " + how).find(only) == 0)
        good = good && measure(setting, how, plan, rounds, program);
  fs::current_path("/");
  return good ? 0 : 1;
}

}  // namespace
}  // namespace troupe::bench

int main(int count, char** words) {
  return troupe::bench::run(count > 1 ? std::max(1, std::atoi(words[1])) : 3,
                            count > 2 ? words[2] : "");
}
