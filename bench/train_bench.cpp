#include "bench/train_bench.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/child.h"
#include "bench/figures.h"
#include "bench/train/peer.h"
#include "bench/train/rows.h"
#include "core/json.h"
#include "core/memory/stream.h"
#include "kernels/peak.h"

namespace troupe::bench {
namespace {

namespace fs = std::filesystem;

/// A language model and its batch.
struct Setting {
  std::string name;
  int layers, width, heads, context, vocabulary;
  // The second step still allocates memory. It must not be half of a median.
  int least_steps = 4, most_steps = 6;
  double seconds = 8;  // A run has as many steps as fit into this time, within these limits.
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
                                       {"gpt-tiny", 4, 128, 4, 64, 512, 10, 30, 4}};

/// Returns the configuration of config/.
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
         "[checkpoint]\nevery = \"1000000 steps\"\nkeep = 1\n";
}

using kernels::Instructions;
using kernels::Precision;

/// A row of the table, and what it takes to run it.
struct Contestant {
  TrainRow row;
  std::vector<std::string> keys = {};  // Our own keys, added to the common ones.

  bool is_peer() const { return row.trainer != Trainer::troupe; }
  Precision precision() const { return row.is_bf16 ? kernels::fastest_bf16() : Precision::fp32; }
};

/// Returns the rows of one set of instructions, which kernels use while this runs. Each of ours
/// stands before its peers.
std::vector<Contestant> contestants_with(Instructions set, int cores) {
  using enum Trainer;
  std::vector<Contestant> all;
  const auto add = [&](Trainer trainer, int on, bool is_bf16, const std::string& how,
                       std::vector<std::string> keys) {
    all.push_back({{.instructions = set,
                    .trainer = trainer,
                    .cores = on,
                    .is_bf16 = is_bf16,
                    .how = how,
                    .runs = {},
                    .problem = {}},
                   std::move(keys)});
  };
  const auto add_peers = [&](int on, bool is_bf16) {
    add(torch_eager, on, is_bf16, "", {});
    add(torch_compiled, on, is_bf16, "", {});
  };
  const std::vector<std::string> one_stage = {"pipeline.stages=1"};
  for (const bool is_bf16 : {false, true}) {
    if (is_bf16 && !kernels::has_bf16_products()) continue;
    add(troupe, 1, is_bf16, "", one_stage);
    add_peers(1, is_bf16);
  }
  if (cores == 1) return all;
  add(troupe, 2, false, "1 stage, 2 threads", one_stage);
  add_peers(2, false);
  const std::vector<std::string> replicas = {"pipeline.stages=1", "pipeline.replicas=2"};
  add(troupe, 2, false, "2 replicas", replicas);
  if (kernels::has_bf16_products()) {
    add(troupe, 2, true, "1 stage, 2 threads", one_stage);
    add_peers(2, true);
    add(troupe, 2, true, "2 replicas", replicas);
  }
  for (const std::string schedule : {"1f1b", "zb-h1", "pipedream"})
    add(troupe, 2, false, "2 stages, " + schedule,
        {"pipeline.stages=2", "pipeline.cuts=sublayers", "pipeline.schedule=" + schedule});
  return all;
}

double peak_of(const Contestant& contestant) {
  MemoryPool memory;
  Stream stream(memory, contestant.row.cores);
  return kernels::fma_peak(stream, contestant.precision());
}

/// Returns how many steps of a run fit into its time, at a usual share of the peak.
int steps_of(const Setting& setting, double peak) {
  constexpr double usual_share = 0.8;
  const double seconds = setting.work() / (usual_share * peak);
  return std::clamp(1 + static_cast<int>(std::ceil(setting.seconds / seconds)), setting.least_steps,
                    setting.most_steps);
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

ChildOrder our_order(const TrainBench& bench, const Contestant& contestant, int steps) {
  ChildOrder order;
  order.environment = {
      {kernels::instructions_variable, std::string(to_string(contestant.row.instructions))}};
  order.command = {bench.program, "train", "bench.toml", "--output", "json"};
  std::vector<std::string> keys = {
      "train.threads=" + std::to_string(contestant.row.cores),
      "train.steps=" + std::to_string(steps),
      "precision.compute=" + std::string(to_string(contestant.precision()))};
  keys.insert(keys.end(), contestant.keys.begin(), contestant.keys.end());
  for (const auto& key : keys) {
    order.command.push_back("--set");
    order.command.push_back(key);
  }
  return order;
}

ChildOrder peer_order(const TorchPeer& peer, const Contestant& contestant, const Setting& setting,
                      int steps, const fs::path& folder) {
  const auto& row = contestant.row;
  const std::string threads = std::to_string(row.cores);
  ChildOrder order;
  // The compiled code of earlier runs is not used: the first step takes as long as a user's first.
  const fs::path compiled = folder / "compiled";
  std::error_code ignored;
  fs::remove_all(compiled, ignored);
  order.environment = {{"OMP_NUM_THREADS", threads},
                       {"MKL_NUM_THREADS", threads},
                       {"TORCHINDUCTOR_CACHE_DIR", compiled}};
  // With all that the processor has, PyTorch chooses as it does for its users.
  if (row.instructions != kernels::instruction_sets().back())
    for (const auto& limit : torch_limits(row.instructions)) order.environment.push_back(limit);
  order.command = {peer.python, peer.script, "--precision", row.is_bf16 ? "bf16" : "fp32"};
  if (row.trainer == Trainer::torch_compiled) order.command.push_back("--compile");
  // A peer that is much slower than expected must not take the time of all others.
  constexpr double patience = 3;
  order.command.insert(order.command.end(),
                       {"--limit", std::to_string(patience * setting.seconds)});
  for (const auto& [flag, value] :
       std::vector<std::pair<std::string, int>>{{"--layers", setting.layers},
                                                {"--width", setting.width},
                                                {"--heads", setting.heads},
                                                {"--context", setting.context},
                                                {"--vocab", setting.vocabulary},
                                                {"--micro", setting.micro},
                                                {"--micro-batches", setting.micro_batches},
                                                {"--threads", row.cores},
                                                {"--steps", steps}}) {
    order.command.push_back(flag);
    order.command.push_back(std::to_string(value));
  }
  return order;
}

/// Fills a run in from what its process said. Returns an error if it said no steps.
Status read_run(const Contestant& contestant, const ChildResult& result, TrainRun& run) {
  run.peak_mib = result.peak_mib;
  if (contestant.is_peer()) {
    const auto facts = torch_facts(result.lines.empty() ? "" : result.lines.front());
    if (!facts) return facts.error();
    if (auto good = check_capability(*facts, contestant.row.instructions); !good) return good;
    for (std::size_t i = 1; i < result.lines.size(); ++i)
      run.seconds.push_back(std::atof(result.lines[i].c_str()));
    if (run.seconds.size() < 2) return Error{"PyTorch made fewer than two steps"};
    run.seconds.erase(run.seconds.begin());
    run.first_step = result.arrivals[1];
    return Done{};
  }
  run.seconds = step_seconds(result.lines);
  if (run.seconds.empty()) return Error{"troupe made fewer than two steps"};
  for (std::size_t i = 0; i < result.lines.size(); ++i)
    if (is_step(result.lines[i])) {
      run.first_step = result.arrivals[i];
      break;
    }
  return Done{};
}

std::string last_line_of(const fs::path& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) last = line;
  return last;
}

/// Returns the processor's name; its family and model too, because names of virtual machines do not
/// tell processors apart.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string name, family, model;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const auto colon = line.find(": ");
    if (colon == line.npos) continue;
    const auto value = line.substr(colon + 2);
    if (line.starts_with("model name"))
      name = value;
    else if (line.starts_with("cpu family"))
      family = value;
    else if (line.starts_with("model\t"))
      model = value;
  }
  if (name.empty()) return "a processor without a name";
  return family.empty() ? name : name + " (family " + family + ", model " + model + ")";
}

/// Returns how many cores this process may use.
int usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return CPU_COUNT(&cores);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::tm parts = {};
  std::strftime(text, sizeof text, "%Y-%m-%d", gmtime_r(&now, &parts));
  return text;
}

/// The measurement of all models.
class Measurement {
 public:
  explicit Measurement(const TrainBench& bench) : bench_(bench) {
    if (bench.instructions.empty())
      sets_ = {kernels::instructions_in_use()};
    else
      sets_ = named_sets(bench.instructions, remarks_);
    if (cores_ == 1) remarks_.push_back("one core only: rows for two cores are left out");
    if (bench.alone) is_peer_known_ = true;
    for (const auto& remark : remarks_) say(remark);
  }
  ~Measurement() { kernels::use_instructions(before_); }
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  void measure(const Setting& setting) {
    const Workplace here(setting);
    std::vector<Contestant> contestants;
    for (const auto set : sets_) {
      kernels::use_instructions(set);
      for (auto& each : contestants_with(set, cores_)) contestants.push_back(std::move(each));
    }
    for (int round = 0; round < bench_.rounds; ++round)
      for (auto& contestant : contestants) run(setting, contestant, here.folder());
    if (!peer_) std::erase_if(contestants, &Contestant::is_peer);
    std::vector<TrainRow> rows;
    for (auto& contestant : contestants) rows.push_back(std::move(contestant.row));
    std::string text = heading(setting) + train_table(work_of(setting), rows);
    for (const auto& remark : remarks_) text += remark + "\n";
    bench_.table(text);
  }

 private:
  static TrainWork work_of(const Setting& setting) { return {setting.tokens(), setting.work()}; }

  void say(const std::string& text) const {
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - start_;
    std::string line;
    print(line, "%4.0f s  ", since.count());
    bench_.progress(line + text);
  }

  void run(const Setting& setting, Contestant& contestant, const fs::path& folder) {
    if (contestant.is_peer() && !find_peer()) return;
    kernels::use_instructions(contestant.row.instructions);
    TrainRun run;
    run.peak_before = peak_of(contestant);
    const int steps = steps_of(setting, run.peak_before);
    auto order = contestant.is_peer() ? peer_order(*peer_, contestant, setting, steps, folder)
                                      : our_order(bench_, contestant, steps);
    order.cores = contestant.row.cores;
    order.folder = folder;
    order.errors = folder / "errors";
    const auto result = run_child(order);
    run.peak_after = peak_of(contestant);
    std::string problem;
    if (!result)
      problem = "cannot start " + order.command.front();
    else if (result->exit_status != 0)
      problem =
          "exit code " + std::to_string(result->exit_status) + ": " + last_line_of(order.errors);
    else if (const auto read = read_run(contestant, *result, run); !read)
      problem = read.error().text;
    const std::string in = setting.name + "  ";
    if (problem.empty()) {
      say(in + train_line(work_of(setting), contestant.row, run));
      contestant.row.runs.push_back(std::move(run));
    } else {
      say(in + contestant.row.name() + ": " + problem);
      contestant.row.problem = problem;
    }
  }

  /// Returns whether there is a peer. Looks for it at the first call, which comes after our first
  /// row: an installation of PyTorch takes minutes.
  bool find_peer() {
    if (is_peer_known_) return peer_.has_value();
    is_peer_known_ = true;
    auto found = find_torch(bench_.python);
    if (found) {
      peer_ = std::move(*found);
      return true;
    }
    remarks_.push_back("no comparison with PyTorch: " + found.error().text);
    say(remarks_.back());
    return false;
  }

  std::string heading(const Setting& setting) const {
    std::string text;
    print(text,
          "%s: %d layers of width %d, context %d, vocabulary %d; %d micro-batches of %d; %.1f "
          "GFLOP a step\n",
          setting.name.c_str(), setting.layers, setting.width, setting.context, setting.vocabulary,
          setting.micro_batches, setting.micro, setting.work() / 1e9);
    text += "  " + processor() + ", " + std::to_string(cores_) +
            (cores_ == 1 ? " core; " : " cores; ") + bench_.version;
    if (peer_) text += "; PyTorch " + peer_->full_version + " with " + peer_->libraries;
    text += "; " + today() + "; rounds: " + std::to_string(bench_.rounds) + "\n";
    return text;
  }

  const TrainBench& bench_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const Instructions before_ = kernels::instructions_in_use();
  const int cores_ = usable_cores();
  std::vector<Instructions> sets_;
  std::vector<std::string> remarks_;  // Lines below every table.
  bool is_peer_known_ = false;
  std::optional<TorchPeer> peer_;
};

}  // namespace

std::vector<std::string> train_bench_models() {
  std::vector<std::string> names;
  names.reserve(settings.size());
  for (const auto& setting : settings) names.push_back(setting.name);
  return names;
}

void measure_train(const TrainBench& bench) {
  Measurement measurement(bench);
  for (const auto& setting : settings)
    if (std::ranges::find(bench.models, setting.name) != bench.models.end())
      measurement.measure(setting);
}

}  // namespace troupe::bench
