// Measures how to share out a run's work after a loss of nodes: the time to plan all losses ahead,
// to look one up, and to search for one that was not planned.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <future>
#include <vector>

#include "actors/nodes/loss_plans.h"
#include "bench/figures.h"
#include "core/threads/real_env.h"

using namespace troupe;

namespace {

/// Returns the median milliseconds of `times` calls.
double time_of(int times, const std::function<void()>& what) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> all;
  for (int i = 0; i < times; ++i) {
    const auto begin = Clock::now();
    what();
    all.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  return bench::median(std::move(all));
}

/// Returns once a condition holds. The loop looks at it again and again.
void wait_for(Loop& loop, const std::function<bool()>& condition) {
  for (bool holds = false; !holds;) {
    std::promise<void> looked;
    loop.after(std::chrono::microseconds(100), [&] {
      holds = condition();
      looked.set_value();
    });
    looked.get_future().wait();
  }
}

/// Returns a run with as many devices as nodes, unequal work, and nodes of `kinds` kinds.
actors::Sharing sharing_of(int nodes, int kinds) {
  actors::Sharing sharing;
  sharing.most = nodes;
  for (int i = 0; i < nodes; ++i) {
    sharing.work.push_back(1 + 0.1 * (i % 7));
    sharing.cores.push_back(4 + 4 * (i % kinds));
  }
  std::ranges::sort(sharing.cores, std::greater<>());
  return sharing;
}

void measure(int nodes, int kinds) {
  const auto now = sharing_of(nodes, kinds);
  const auto neighbours = actors::neighbours_of(now);
  const auto& lost = neighbours.back();
  RealEnv env;
  const auto loop = env.make_loop({"lineup"});
  actors::LossPlans loss_plans(*loop);
  const double all = time_of(1, [&] {
    loop->post([&] { loss_plans.look_ahead(now); });
    wait_for(*loop, [&] { return loss_plans.foresaw(lost); });
  });
  double promptly = 0, thoroughly = 0;
  const double prompt =
      time_of(5, [&] { promptly = actors::share_out(lost, actors::Search::prompt).busiest; });
  loop->end();
  const double lookup = time_of(100, [&] { thoroughly = loss_plans.shares(lost).busiest; });
  std::printf("| %d | %d | %zu | %.2f s | %.2f us | %.1f ms | %.1f %% |\n", nodes, kinds,
              neighbours.size(), all / 1e3, 1e3 * lookup, prompt,
              100 * (promptly / thoroughly - 1));
  std::fflush(stdout);
}

}  // namespace

int main() {
  std::puts(
      "| nodes | kinds | line-ups foreseen | that takes | looked up | found at once | its "
      "busiest node has more to do |");
  std::puts("|---|---|---|---|---|---|---|");
  for (const int nodes : {4, 16, 32, 64, 100})
    for (const int kinds : {1, 3}) measure(nodes, kinds);
}
