// Measures a run's goodput while hosts come and go: one of four nodes fails at regular intervals
// and returns after half of one. Compares it with the prediction of `troupe sim`.
//
//     ./dev bench goodput [SECONDS_BETWEEN_LOSSES [SECONDS]]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "bench/live_cluster.h"
#include "core/json.h"
#include "storage/files/temporary_folder.h"

namespace troupe::bench {
namespace {

namespace fs = std::filesystem;
using Seconds = std::chrono::duration<double>;

constexpr int nodes = 4;

const std::string config = R"(
extends = ")" TROUPE_ROOT R"(/config/gpt-small.toml"
name = "bench"
[batch]
global = 8
micro = 1
[pipeline]
stages = "auto"
[checkpoint]
every = "60s"
[elastic]
nodes = "1:4"
copies = 2
[train]
steps = 1000000
eval_every = 1000000
)";

/// Returns the bytes per second that one thread copies, in blocks that exceed all caches.
double copying_rate() {
  const std::vector<char> from(std::size_t{64} << 20, 1);
  std::vector<char> to(from.size());
  std::vector<double> seconds;
  for (int round = 0; round < 9; ++round) {
    const auto began = std::chrono::steady_clock::now();
    std::memcpy(to.data(), from.data(), from.size());
    seconds.push_back(Seconds(std::chrono::steady_clock::now() - began).count());
  }
  return static_cast<double>(to.size()) / median(seconds);
}

/// Returns the prediction of `troupe sim` for such nodes of the given speed.
std::optional<Value> simulate(double fail_every, double window, double speed) {
  const auto folder = storage::TemporaryFolder::make();
  if (!folder) return {};
  std::ofstream(*folder / "run.toml") << config;
  std::ofstream(*folder / "cluster.toml")
      << "[[nodes]]\nname = \"n\"\ncount = " << nodes << "\nmemory = \"16GiB\"\nspeed = " << speed
      << "\ninside = { bandwidth = \"" << copying_rate() / 1e9
      << "GB/s\" }\noutside = { bandwidth = \"10GB/s\" }\n";
  const std::string program = fs::canonical("/proc/self/exe").parent_path() / "../apps/troupe";
  const auto ran = run_child(
      {{program, "sim", *folder / "run.toml", "--cluster", *folder / "cluster.toml", "--fail-every",
        std::to_string(fail_every), "--hours", std::to_string(window / 3600), "--output", "json"},
       {},
       1});
  if (!ran || ran->exit_status != 0 || ran->lines.empty()) return {};
  auto told = parse_json(ran->lines.back());
  return told ? std::optional(std::move(*told)) : std::nullopt;
}

double first_rate(const Value& simulated) {
  const auto& plans = *simulated.find("plans")->list();
  return plans.empty() ? 1 : number_in(plans.front(), "steps_per_second");
}

/// The steps that a run has done, with the number of nodes that did each.
class Steps {
 public:
  void learn(const Value& event, std::size_t players) {
    if (!is_type(event, "step")) return;
    const double seconds = number_in(event, "seconds");
    took_[players].push_back(seconds);
    by_step_[static_cast<std::int64_t>(number_in(event, "step"))] = players;
  }
  std::size_t done() const { return by_step_.size(); }
  /// Returns the seconds that these steps take without failures and copies, each step once.
  double useful() const {
    double sum = 0;
    for (const auto& [step, players] : by_step_) sum += median(took_.at(players));
    return sum;
  }
  double usual() const { return median(took_.rbegin()->second); }

 private:
  std::map<std::size_t, std::vector<double>> took_;  // Keyed by number of nodes.
  std::map<std::int64_t, std::size_t> by_step_;
};

/// Reads all events until the time `until`.
void watch(Story& story, Steps& steps, double until) {
  const auto is_over = [&](const Value& event) {
    steps.learn(event, story.players().size());
    return now() >= until;
  };
  while (now() < until) (void)story.find(is_over, Seconds(until - now()));
}

int main_of(double fail_every, double window) {
  std::mt19937 random(1);
  LiveCluster cluster({.nodes = nodes, .config = config});
  if (!cluster.submit() || !cluster.settle(random)) return 1;
  auto& story = cluster.story();
  Steps steps;
  const double end = now() + window;
  int losses = 0;
  for (double next = now() + fail_every; next + fail_every / 2 < end; next += fail_every) {
    watch(story, steps, next);
    const auto gone = cluster.some_player(random);
    cluster.take_away(gone);
    ++losses;
    watch(story, steps, next + fail_every / 2);
    cluster.bring_back(gone);
  }
  watch(story, steps, end);
  const double measured = steps.useful() / window;

  const auto unscaled = simulate(fail_every, window, 1);
  if (!unscaled) return 1;
  const auto simulated = simulate(fail_every, window, 1 / (steps.usual() * first_rate(*unscaled)));
  if (!simulated) return 1;
  const double expected = number_in(*simulated, "goodput");
  std::printf("%d losses of one of %d nodes in %.0f s, a step takes %.2f s; %zu steps\n", losses,
              nodes, window, steps.usual(), steps.done());
  std::printf("goodput %.2f %%, simulated %.2f %% (goal: within 2 points): %+.2f\n", 100 * measured,
              100 * expected, 100 * (measured - expected));
  std::printf("the run itself, which counts slow steps as useful: %.2f %%\n",
              100 * story.goodput());
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int count, char** words) {
  const auto number = [&](int which, double otherwise) {
    return count > which ? std::max(1.0, std::atof(words[which])) : otherwise;
  };
  return troupe::bench::main_of(number(1, 60), number(2, 1200));
}
