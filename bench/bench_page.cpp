// Measures what open pages cost a head with 200 nodes and 100 runs, and how much they slow a run
// down. The head and the nodes of the run share the first core. The viewers have the last one. They
// ask the head and a stand-in on their own core by turns, so that only what they cost the head
// counts: cores share caches, memory and power.
//
//     ./dev bench page [ROUNDS [SECONDS]]

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "bench/crowd.h"
#include "bench/figures.h"
#include "bench/live_cluster.h"
#include "bench/page_viewers.h"
#include "bench/thread_times.h"

namespace troupe::bench {
namespace {

using namespace std::chrono_literals;

constexpr int nodes = 200;
constexpr int players = 2;
constexpr int runs = 100;

/// The nodes have two cores each, and those of the crowd one, so the crowd never gets a part.
const std::string run_config = R"(
extends = ")" TROUPE_ROOT R"(/config/quickstart.toml"
name = "bench"
[model]
layers = 2
[batch]
global = 16
micro = 2
[pipeline]
stages = 2
[elastic]
nodes = "2:2"
[checkpoint]
every = "1h"
[train]
steps = 10000000
eval_every = 10000000
[data]
train = "made:markov?states=32"
)";

bool complain(const std::string& why) {
  return std::fprintf(stderr, "error: %s\n", why.c_str()), false;
}

/// The figures of a while with some viewers.
struct While {
  double busy = 0;  // The share of a core that the head used.
  double step = 0;  // The mean seconds of a step.
  PageCounts asked;
};

double head_seconds(const LiveCluster& cluster) {
  double sum = 0;
  for (const auto& [name, seconds] : thread_times(cluster.process_of_head())) sum += seconds;
  return sum;
}

bool watch(LiveCluster& cluster, int port, int viewers, double seconds, While& seen) {
  const PageViewers pages(port, viewers, "bench");
  auto& story = cluster.story();
  const auto next_step = [&] {
    const auto before = story.step();
    const auto event = story.find([&](const Value&) { return story.step() > before; });
    return event ? number_in(*event, "time") : 0;
  };
  story.catch_up();
  (void)next_step();
  const double begin = next_step();
  const auto first = story.step();
  const double used = head_seconds(cluster);
  double end = begin;
  while (end - begin < seconds) {
    end = next_step();
    if (end == 0) return complain("the run does not go on");
  }
  seen.busy = (head_seconds(cluster) - used) / (end - begin);
  seen.step = (end - begin) / static_cast<double>(story.step() - first);
  seen.asked = pages.counts();
  if (seen.asked.failed > 0 || (viewers > 0 && seen.asked.answers == 0))
    return complain(std::to_string(seen.asked.failed) + " questions of " + std::to_string(viewers) +
                    " viewers had no good answer");
  return true;
}

bool submit_runs(LiveCluster& cluster) {
  for (int run = 1; run < runs; ++run)
    if (!cluster.submit(
            {"--set", "name=short-" + std::to_string(run), "--set", "train.steps=1", "--wait"}))
      return complain("run " + std::to_string(run) + " did not end well");
  return cluster.submit() || complain("the run was not submitted");
}

/// The figures of all rounds with this many viewers.
struct Figures {
  std::vector<double> busy, slower, bytes;
};

bool measure(LiveCluster& cluster, int port, int stand_in, double seconds,
             std::map<int, Figures>& all) {
  for (auto& [viewers, figures] : all) {
    // The machine's speed drifts, so the time before and the time after are the yardstick.
    While before, with, after;
    if (!watch(cluster, stand_in, viewers, seconds / 2, before) ||
        !watch(cluster, port, viewers, seconds, with) ||
        !watch(cluster, stand_in, viewers, seconds / 2, after))
      return false;
    figures.busy.push_back((with.busy - (before.busy + after.busy) / 2) / viewers);
    figures.slower.push_back(with.step / ((before.step + after.step) / 2) - 1);
    figures.bytes.push_back(static_cast<double>(with.asked.bytes) / viewers / seconds);
  }
  return true;
}

int run(int rounds, double seconds) {
  if (std::thread::hardware_concurrency() < 2)
    return complain("wanted two cores: one for the head and the run, one for the viewers"), 1;
  const int port = free_port();
  LiveCluster cluster({.nodes = players,
                       .config = run_config,
                       .cores = 2,
                       .machine_cores = 1,
                       .head_words = {"--http", "127.0.0.1:" + std::to_string(port)}});
  if (!submit_runs(cluster)) return 1;
  const auto crowd = Crowd::start({.endpoint = cluster.head(), .nodes = nodes - players});
  if (!crowd) return complain(crowd.error().text), 1;
  if (auto joined = (*crowd)->wait_until_welcome(60s); !joined)
    return complain(joined.error().text), 1;
  const StandIn stand_in(port, "bench");
  std::map<int, Figures> all{{1, {}}, {10, {}}, {50, {}}};
  for (int round = 0; round < rounds; ++round)
    if (!measure(cluster, port, stand_in.port(), seconds, all)) return 1;
  std::puts(
      "| viewers | each costs the head of a core | all of them | each gets | a step takes longer "
      "by "
      "| least | most |\n|---|---|---|---|---|---|---|");
  for (const auto& [viewers, figures] : all) {
    const auto [least, most] = std::ranges::minmax(figures.slower);
    const double busy = 100 * median(figures.busy);
    std::printf("| %d | %.2f %% | %.2f %% | %.1f kB/s | %.2f %% | %.2f %% | %.2f %% |\n", viewers,
                busy, busy * viewers, median(figures.bytes) / 1e3, 100 * median(figures.slower),
                100 * least, 100 * most);
  }
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int count, char** words) {
  const int rounds = count > 1 ? std::max(1, std::atoi(words[1])) : 3;
  const int seconds = count > 2 ? std::max(1, std::atoi(words[2])) : 20;
  return troupe::bench::run(rounds, seconds);
}
