#include "bench/train_bench.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "bench/child.h"
#include "bench/figures.h"
#include "core/memory/stream.h"
#include "kernels/peak.h"

namespace troupe::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* torch_source = TROUPE_ROOT "/bench/peers/peer_torch.py";

/// A language model and its batch.
struct Setting {
  std::string name;
  int layers, width, heads, context, vocabulary;
  int steps = 6;  // The second still allocates memory. It must not be half of a median.
  int micro = 4, micro_batches = 8;

  double tokens() const { return 1.0 * micro * micro_batches * context; }
  /// Returns the floating-point operations of a step: three products for each matrix, and attention
  /// over the whole square, as model FLOP utilisation is usually counted.
  double work() const {
    const double matrices = layers * 12.0 * width * width + 1.0 * vocabulary * width;
    return tokens() * (6 * matrices + 12.0 * layers * width * context);
  }
};

const std::vector<Setting> settings = {{"gpt-small", 6, 384, 6, 256, 4096},
                                       {"gpt-tiny", 4, 128, 4, 64, 512, 30}};

/// Returns the configuration of config/, with a short run.
std::string config_of(const Setting& setting) {
  const auto line = [](const std::string& key, auto value) {
    return key + " = " + std::to_string(value) + "\n";
  };
  return "name = \"bench\"\n[model]\nkind = \"gpt2\"\n" + line("layers", setting.layers) +
         line("width", setting.width) + line("heads", setting.heads) +
         line("context", setting.context) + line("vocab", setting.vocabulary) +
         "[data]\ntrain = \"made:markov?states=64\"\n[batch]\n" +
         line("global", setting.micro * setting.micro_batches) + line("micro", setting.micro) +
         "[optimizer]\nkind = \"adamw\"\nlr = 3e-4\nweight_decay = 0.1\nclip_norm = 1.0\n"
         "[checkpoint]\nevery = \"1000000 steps\"\nkeep = 1\n[train]\n" +
         line("steps", setting.steps);
}

struct Contestant {
  enum class Who { troupe, torch, torch_in_two_stages };

  std::string name;
  int cores = 1;
  kernels::Precision precision = kernels::Precision::fp32;  // The precision of the peak.
  Who who = Who::troupe;
  std::vector<std::string> keys = {};  // Added to the common keys.

  bool is_peer() const { return who != Who::troupe; }
};

struct Measured {
  std::vector<double> seconds;
  std::vector<double> shares;  // Shares of the peak, by run.
  double peak_mib = 0;
};

double peak_of(const Contestant& contestant) {
  MemoryPool memory;
  Stream stream(memory, contestant.cores);
  return kernels::fma_peak(stream, contestant.precision);
}

ChildOrder order_for(const Contestant& contestant, const Setting& setting,
                     const std::string& program, const fs::path& folder) {
  const std::string threads = std::to_string(contestant.cores);
  const bool in_stages = contestant.who == Contestant::Who::torch_in_two_stages;
  ChildOrder order;
  order.cores = contestant.cores;
  order.folder = folder;
  if (contestant.is_peer()) {
    const std::string each = in_stages ? "1" : threads;
    order.environment = {{"OMP_NUM_THREADS", each}, {"OPENBLAS_NUM_THREADS", each}};
    order.command = {"/usr/bin/python3", torch_source};
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
      fs::remove(folder / "meeting");
      order.command.insert(order.command.end(), {"--meeting", folder / "meeting"});
    }
    return order;
  }
  order.command = {program, "train", "bench.toml", "--output", "json"};
  std::vector<std::string> keys = {
      "train.threads=" + threads,
      "precision.compute=" + std::string(to_string(contestant.precision))};
  keys.insert(keys.end(), contestant.keys.begin(), contestant.keys.end());
  for (const auto& key : keys) {
    order.command.push_back("--set");
    order.command.push_back(key);
  }
  return order;
}

/// Returns the seconds of each step but the first, which warms up.
std::vector<double> seconds_of(const Contestant& contestant, const ChildResult& result) {
  if (!contestant.is_peer()) return step_seconds(result.lines);
  std::vector<double> seconds;
  for (const auto& line : result.lines) seconds.push_back(std::atof(line.c_str()));
  if (!seconds.empty()) seconds.erase(seconds.begin());
  return seconds;
}

std::vector<Contestant> all_contestants() {
  using enum Contestant::Who;
  using enum kernels::Precision;
  const std::vector<std::string> one_stage = {"pipeline.stages=1"};
  std::vector<Contestant> all = {{"PyTorch fp32, 1 core", 1, fp32, torch},
                                 {"troupe fp32, 1 core", 1, fp32, troupe, one_stage}};
  if (kernels::has_bf16_products())
    all.push_back({"troupe bf16, 1 core", 1, kernels::fastest_bf16(), troupe, one_stage});
  if (std::thread::hardware_concurrency() == 1) return all;
  all.push_back({"PyTorch fp32, 2 threads", 2, fp32, torch});
  all.push_back({"PyTorch fp32, 1F1B over gloo", 2, fp32, torch_in_two_stages});
  for (const auto& [how, keys] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"1 stage, 2 threads", one_stage},
           {"2 replicas", {"pipeline.stages=1", "pipeline.replicas=2"}},
           {"2 stages, zb-h1", {"pipeline.stages=2", "pipeline.schedule=zb-h1"}},
           {"2 stages, pipedream", {"pipeline.stages=2", "pipeline.schedule=pipedream"}}}) {
    all.push_back({"troupe fp32, " + how, 2, fp32, troupe, keys});
    if (kernels::has_bf16_products() && how == "2 replicas")
      all.push_back({"troupe bf16, " + how, 2, kernels::fastest_bf16(), troupe, keys});
  }
  return all;
}

/// A folder for the runs. The destructor removes it.
class Workplace {
 public:
  explicit Workplace(const Setting& setting) {
    fs::create_directories(folder_);
    std::ofstream(folder_ / "bench.toml") << config_of(setting);
  }
  ~Workplace() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  const fs::path& folder() const { return folder_; }

 private:
  fs::path folder_ = fs::temp_directory_path() / ("troupe-bench-" + std::to_string(getpid()));
};

std::string table(const Setting& setting, const std::vector<Contestant>& contestants,
                  const std::map<std::string, Measured>& measured) {
  std::string text;
  print(
      text,
      "%s: %d layers of width %d, context %d, vocabulary %d; %d micro-batches of %d; %.1f GFLOP a "
      "step\n",
      setting.name.c_str(), setting.layers, setting.width, setting.context, setting.vocabulary,
      setting.micro_batches, setting.micro, setting.work() / 1e9);
  print(text, "  %-34s %10s %14s %12s %12s\n", "", "tokens/s", "share of peak", "x PyTorch",
        "memory MiB");
  for (const auto& contestant : contestants) {
    const auto found = measured.find(contestant.name);
    if (found == measured.end()) {
      print(text, "  %-34s not run\n", contestant.name.c_str());
      continue;
    }
    const auto& entry = found->second;
    const double seconds = median(entry.seconds);
    double peer = 0;  // The fastest peer on as many cores.
    for (const auto& other : contestants)
      if (const auto its = measured.find(other.name);
          its != measured.end() && other.is_peer() && other.cores == contestant.cores) {
        const double theirs = median(its->second.seconds);
        peer = peer > 0 ? std::min(peer, theirs) : theirs;
      }
    print(text, "  %-34s %10.0f %14.3f ", contestant.name.c_str(), setting.tokens() / seconds,
          median(entry.shares));
    peer > 0 ? print(text, "%12.2f", peer / seconds) : print(text, "%12s", "");
    print(text, " %12.0f\n", entry.peak_mib);
  }
  return text;
}

}  // namespace

std::vector<std::string> train_bench_models() {
  std::vector<std::string> names;
  names.reserve(settings.size());
  for (const auto& setting : settings) names.push_back(setting.name);
  return names;
}

std::string measure_train(const std::string& program, const std::string& model, int rounds,
                          Beside beside) {
  const auto& setting = *std::find_if(settings.begin(), settings.end(),
                                      [&](const Setting& each) { return each.name == model; });
  const Workplace here(setting);
  auto contestants = all_contestants();
  if (beside == Beside::nobody) std::erase_if(contestants, &Contestant::is_peer);
  std::map<std::string, Measured> measured;
  for (int round = 0; round < rounds; ++round)
    for (const auto& contestant : contestants) {
      const double before = peak_of(contestant);
      const auto result = run_child(order_for(contestant, setting, program, here.folder()));
      if (!result || result->exit_status != 0) continue;
      const double peak = (before + peak_of(contestant)) / 2;
      const auto seconds = seconds_of(contestant, *result);
      if (seconds.empty()) continue;
      auto& entry = measured[contestant.name];
      entry.seconds.insert(entry.seconds.end(), seconds.begin(), seconds.end());
      entry.shares.push_back(setting.work() / median(seconds) / peak);
      entry.peak_mib = std::max(entry.peak_mib, result->peak_mib);
    }
  return table(setting, contestants, measured);
}

}  // namespace troupe::bench
