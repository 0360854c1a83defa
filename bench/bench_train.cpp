// Tokens per second of `troupe train`, as shares of this machine's own measured peak, beside
// PyTorch in the same run where it is installed. Runs are interleaved, figures are medians over all
// steps but the first of each run.
//
//     ./dev bench train [ROUNDS]

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "bench/child.h"
#include "bench/figures.h"
#include "core/stream.h"
#include "kernels/peak.h"

namespace troupe::bench {
namespace {

namespace fs = std::filesystem;

/// A language model and its batch, as docs/benchmarks.md describes them.
struct Setting {
  std::string name;
  std::string config;
  int layers, width, heads, context, vocabulary;
  int micro = 4, micro_batches = 8;
  int steps = 6;  // The second one still meets new memory; it shall not be half of a median.

  double tokens() const { return 1.0 * micro * micro_batches * context; }
  /// Multiplications and additions of a step: three products for each matrix, and attention over
  /// the whole square, as model FLOP utilisation is usually counted.
  double work() const {
    const double matrices = layers * 12.0 * width * width + 1.0 * vocabulary * width;
    return tokens() * (6 * matrices + 12.0 * layers * width * context);
  }
};

struct Contestant {
  enum class Who { troupe, torch, torch_in_two_stages };

  std::string name;
  int cores = 1;
  kernels::Precision precision = kernels::Precision::fp32;  // Whose peak it is held against.
  Who who = Who::troupe;
  std::vector<std::string> keys = {};  // Beside those that all have.

  bool is_peer() const { return who != Who::troupe; }
};

struct Measured {
  std::vector<double> seconds;
  double peak_mib = 0;
};

ChildOrder order_for(const Contestant& contestant, const Setting& setting,
                     const std::string& here) {
  const std::string threads = std::to_string(contestant.cores);
  const bool in_stages = contestant.who == Contestant::Who::torch_in_two_stages;
  ChildOrder order;
  order.cores = contestant.cores;
  if (contestant.is_peer()) {
    const std::string each = in_stages ? "1" : threads;
    order.environment = {{"OMP_NUM_THREADS", each}, {"OPENBLAS_NUM_THREADS", each}};
    order.command = {"/usr/bin/python3", TROUPE_ROOT "/bench/peer_torch.py"};
    for (const auto& [flag, value] :
         std::map<std::string, int>{{"--layers", setting.layers},
                                    {"--width", setting.width},
                                    {"--heads", setting.heads},
                                    {"--context", setting.context},
                                    {"--vocab", setting.vocabulary},
                                    {"--micro", setting.micro},
                                    {"--micro-batches", setting.micro_batches},
                                    {"--threads", contestant.cores},
                                    {"--steps", setting.steps}}) {
      order.command.push_back(flag);
      order.command.push_back(std::to_string(value));
    }
    if (in_stages) {
      fs::remove("meeting");
      order.command.insert(order.command.end(), {"--meeting", fs::absolute("meeting").string()});
    }
    return order;
  }
  order.command = {here + "/../apps/troupe", "train", TROUPE_ROOT "/" + setting.config, "--output",
                   "json"};
  std::vector<std::string> keys = {
      "train.threads=" + threads,
      "train.steps=" + std::to_string(setting.steps),
      "precision.compute=" + std::string(to_string(contestant.precision)),
      std::string("name=bench"),
      std::string("optimizer.schedule.total_steps=1000"),
      std::string("checkpoint.every=1000000 steps"),
      std::string("checkpoint.keep=1")};
  keys.insert(keys.end(), contestant.keys.begin(), contestant.keys.end());
  for (const auto& key : keys) {
    order.command.push_back("--set");
    order.command.push_back(key);
  }
  return order;
}

/// Seconds of each step but the first, which warms up.
std::vector<double> seconds_of(const Contestant& contestant, const ChildResult& result) {
  if (!contestant.is_peer()) return step_seconds(result.lines);
  std::vector<double> seconds;
  for (const auto& line : result.lines) seconds.push_back(std::atof(line.c_str()));
  if (!seconds.empty()) seconds.erase(seconds.begin());
  return seconds;
}

void measure(const Setting& setting, const std::vector<Contestant>& contestants, int rounds,
             const std::string& here) {
  std::map<std::string, Measured> measured;
  std::map<std::pair<int, kernels::Precision>, std::vector<double>> peaks;
  for (int round = 0; round < rounds; ++round) {
    for (const auto& contestant : contestants) {
      MemoryPool memory;
      Stream stream(memory, contestant.cores);
      peaks[{contestant.cores, contestant.precision}].push_back(
          kernels::fma_peak(stream, contestant.precision));
      const auto result = run_child(order_for(contestant, setting, here));
      if (!result || result->exit_status != 0) continue;
      auto& entry = measured[contestant.name];
      for (const double s : seconds_of(contestant, *result)) entry.seconds.push_back(s);
      entry.peak_mib = std::max(entry.peak_mib, result->peak_mib);
    }
  }
  std::printf(
      "\n%s: %d layers of width %d, context %d, vocabulary %d; %d micro-batches of %d; %.1f GFLOP "
      "a step\n",
      setting.name.c_str(), setting.layers, setting.width, setting.context, setting.vocabulary,
      setting.micro_batches, setting.micro, setting.work() / 1e9);
  std::printf("  %-34s %10s %14s %12s %12s\n", "", "tokens/s", "share of peak", "x PyTorch",
              "memory MiB");
  for (const auto& contestant : contestants) {
    const auto& entry = measured[contestant.name];
    if (entry.seconds.empty()) {
      std::printf("  %-34s not run\n", contestant.name.c_str());
      continue;
    }
    const double seconds = median(entry.seconds);
    const double peak = median(peaks[{contestant.cores, contestant.precision}]);
    double peer = 0;  // The best one on as many cores.
    for (const auto& other : contestants) {
      const auto& of = measured[other.name].seconds;
      if (other.is_peer() && other.cores == contestant.cores && !of.empty())
        peer = peer > 0 ? std::min(peer, median(of)) : median(of);
    }
    std::printf("  %-34s %10.0f %14.3f ", contestant.name.c_str(), setting.tokens() / seconds,
                setting.work() / seconds / peak);
    peer > 0 ? std::printf("%12.2f", peer / seconds) : std::printf("%12s", "");
    std::printf(" %12.0f\n", entry.peak_mib);
  }
}

int run(int rounds) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string here = fs::read_symlink("/proc/self/exe").parent_path().string();
  const auto folder = fs::temp_directory_path() / ("troupe-bench-" + std::to_string(getpid()));
  fs::create_directories(folder);
  fs::current_path(folder);
  using enum Contestant::Who;
  using enum kernels::Precision;
  const std::vector<std::string> one_stage = {"pipeline.stages=1"};
  std::vector<Contestant> contestants = {{"PyTorch fp32, 1 core", 1, fp32, torch},
                                         {"troupe fp32, 1 core", 1, fp32, troupe, one_stage}};
  if (kernels::has_bf16_products())
    contestants.push_back({"troupe bf16, 1 core", 1, kernels::fastest_bf16(), troupe, one_stage});
  if (std::thread::hardware_concurrency() > 1) {
    contestants.push_back({"PyTorch fp32, 2 threads", 2, fp32, torch});
    contestants.push_back({"PyTorch fp32, 1F1B over gloo", 2, fp32, torch_in_two_stages});
    for (const auto& [how, keys] : std::vector<std::pair<std::string, std::vector<std::string>>>{
             {"1 stage, 2 threads", one_stage},
             {"2 replicas", {"pipeline.stages=1", "pipeline.replicas=2"}},
             {"2 stages, zb-h1", {"pipeline.stages=2", "pipeline.schedule=zb-h1"}},
             {"2 stages, pipedream", {"pipeline.stages=2", "pipeline.schedule=pipedream"}}}) {
      contestants.push_back({"troupe fp32, " + how, 2, fp32, troupe, keys});
      if (kernels::has_bf16_products() && how == "2 replicas")
        contestants.push_back({"troupe bf16, " + how, 2, kernels::fastest_bf16(), troupe, keys});
    }
  }
  measure({"gpt-small", "config/gpt-small.toml", 6, 384, 6, 256, 4096}, contestants, rounds, here);
  measure({"gpt-tiny", "config/gpt-tiny.toml", 4, 128, 4, 64, 512, 4, 8, 30}, contestants, rounds,
          here);
  fs::current_path("/");
  fs::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int count, char** words) {
  return troupe::bench::run(count > 1 ? std::max(1, std::atoi(words[1])) : 3);
}
