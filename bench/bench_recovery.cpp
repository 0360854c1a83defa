// Measures how long a run stops when something is lost: a head, three nodes and a run that trains,
// with processes killed at random moments. All times come from the run's events, which carry this
// machine's clock.
//
//     ./dev bench recovery [TIMES] [DATA] [WHAT]
//
// DATA is what `data.train` may be; its tokens must be below 32. By default data are made. WHAT is
// one of kill, silence, head and drain, which then comes TIMES times; by default all of them come,
// the last three for a third of TIMES.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "bench/live_cluster.h"

namespace troupe::bench {
namespace {

constexpr int nodes = 3;

const std::string config = R"(
extends = ")" TROUPE_ROOT R"(/config/quickstart.toml"
name = "bench"
[model]
layers = 4
[batch]
global = 16
micro = 2
[pipeline]
stages = 3
[checkpoint]
every = "10 steps"
[train]
steps = 10000000
eval_every = 10000000
[limits]
strikes = 1000000
[data]
train = ")";

double part_of(std::vector<double> numbers, double part) {
  std::sort(numbers.begin(), numbers.end());
  const auto last = static_cast<double>(numbers.size() - 1);
  return numbers[static_cast<std::size_t>(std::lround(part * last))];
}

void print(const std::string& what, const std::vector<Recovery>& all) {
  if (all.empty()) return;
  const auto line = [&](const char* name, double Recovery::*member) {
    std::vector<double> numbers;
    numbers.reserve(all.size());
    for (const auto& one : all) numbers.push_back(one.*member);
    std::printf("%-14s %-28s p50 %7.3f  p99 %7.3f  most %7.3f s\n", what.c_str(), name,
                part_of(numbers, 0.5), part_of(numbers, 0.99), part_of(numbers, 1));
  };
  line("noticed", &Recovery::noticed);
  line("goes on, without the redone", &Recovery::paused);
  line("goes on", &Recovery::goes_on);
  double redone = 0;
  for (const auto& one : all) redone += static_cast<double>(one.redone);
  std::printf("%-14s %-28s mean %6.1f  of %zu times\n", what.c_str(), "steps done again",
              redone / static_cast<double>(all.size()), all.size());
  std::fflush(stdout);
}

/// Applies a fault `times` times, each time to a run that has settled.
bool measure(
    LiveCluster& cluster, const std::string& what, int times, std::mt19937& random,
    const std::function<void()>& deed, const std::function<void()>& afterwards = [] {}) {
  std::vector<Recovery> all;
  for (int i = 0; i < times; ++i) {
    if (!cluster.settle(random)) {
      std::fprintf(stderr, "%s: the run does not go on\n", what.c_str());
      return false;
    }
    const auto before = cluster.story().step();
    const double begun = now();
    deed();
    const auto measured = follow_recovery(cluster.story(), begun, before);
    afterwards();
    if (!measured) {
      std::fprintf(stderr, "%s: the run has not gone on\n", what.c_str());
      return false;
    }
    all.push_back(*measured);
  }
  print(what, all);
  return true;
}

/// Sends a signal to a process, or to none if its id is not positive.
void send(pid_t process, int signal) {
  if (process > 0) kill(process, signal);
}

int main_of(int times, const std::string& data, const std::string& only) {
  std::mt19937 random(1);
  LiveCluster cluster({.nodes = nodes, .config = config + data + "\"\n"});
  if (!cluster.submit()) return 1;
  std::string who;
  const auto some = [&] { return cluster.process_of(who = cluster.some_player(random)); };
  pid_t frozen = -1;
  const int fewer = only.empty() ? std::max(1, times / 3) : times;
  const auto wanted = [&](const char* what) { return only.empty() || only == what; };
  const bool all =
      (!wanted("kill") ||
       measure(cluster, "kill", times, random, [&] { send(some(), SIGKILL); })) &&
      (!wanted("silence") ||
       measure(
           cluster, "silence", fewer, random, [&] { send(frozen = some(), SIGSTOP); },
           [&] { send(frozen, SIGCONT); })) &&
      (!wanted("head") || measure(cluster, "head", fewer, random,
                                  [&] { send(cluster.process_of_head(), SIGKILL); })) &&
      (!wanted("drain") || measure(cluster, "drain", fewer, random,
                                   [&] { cluster.replace(cluster.some_player(random)); }));
  std::printf("a step takes %.3f s; a save point every 10 steps\n", cluster.story().usual());
  return all ? 0 : 1;
}

}  // namespace
}  // namespace troupe::bench

int main(int count, char** words) {
  return troupe::bench::main_of(count > 1 ? std::max(1, std::atoi(words[1])) : 30,
                                count > 2 ? words[2] : "made:markov?states=32",
                                count > 3 ? words[3] : "");
}
