#include "apps/run/replanner.h"

#include <algorithm>
#include <utility>

#include "apps/machine/this_machine.h"
#include "apps/run/plan_request.h"
#include "apps/run/run_setup.h"
#include "schedules/plan/plan.h"

namespace troupe::apps {
namespace {

constexpr std::size_t most_changes = 1024;
constexpr std::chrono::milliseconds looks_at_least_every(2000);
constexpr std::chrono::milliseconds looks_soon(100);

std::vector<std::uint64_t> incarnations(const std::vector<actors::NodeHere>& nodes) {
  std::vector<std::uint64_t> all;
  all.reserve(nodes.size());
  for (const auto& node : nodes) all.push_back(node.incarnation);
  std::ranges::sort(all);
  return all;
}

/// Returns the planner's estimate of micro-batches per second for the plan in force.
Result<double> rate_now(const Replanner::Standing& standing, const RunSetup& setup) {
  auto loaded = standing.open;
  take(standing.choice, loaded);
  const auto request = plan_request(loaded.config, setup, cluster_of(loaded.config, standing.used),
                                    nominal_device());
  if (!request) return request.error();
  const auto plan = schedules::make_plan(*request);
  if (!plan) return plan.error();
  return plan->rate;
}

}  // namespace

bool Replanner::Best::is_of(const Standing& standing) const {
  return used == incarnations(standing.used) && usable == incarnations(standing.usable) &&
         before.has_plan_of(standing.choice);
}

Replanner::Replanner(Env& env, storage::Files& files, std::chrono::milliseconds patience, Look look,
                     Begin begin)
    : env_(env),
      files_(files),
      patience_(patience),
      look_(std::move(look)),
      begin_(std::move(begin)),
      loop_(env.make_loop({"replanner"})) {
  outlook_.begun = env_.now();
  watch();
}

/// Looks again and again.
void Replanner::watch() {
  loop_->after(std::min(patience_, looks_at_least_every), [this] {
    consider();
    watch();
  });
}

/// Looks soon. However often this is called meanwhile, one look waits: a look among thousands of
/// nodes takes milliseconds, and many nodes may come at once.
void Replanner::look() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(looks_, true)) return;
  }
  loop_->after(looks_soon, [this] {
    {
      const std::lock_guard lock(mutex_);
      looks_ = false;
    }
    consider();
  });
}

void Replanner::consider() {
  {
    const std::lock_guard lock(mutex_);
    if (since_ || (went_ && env_.now() - *went_ < patience_)) return;
  }
  const auto standing = look_();
  if (!standing) return;
  // Only the loop changes `best_`.
  if (!best_ || !best_->is_of(*standing)) {
    auto best = best_for(*standing);
    const std::lock_guard lock(mutex_);
    best_ = std::move(best);
  }
  {
    const std::lock_guard lock(mutex_);
    if (!pays(*standing)) return;
    since_ = env_.now();
  }
  begin_();
}

Replanner::Best Replanner::best_for(const Standing& standing) {
  Best best{incarnations(standing.used), incarnations(standing.usable), standing.choice,
            standing.choice};
  auto setup = set_up(files_, standing.open.config);
  if (!setup) return best;
  const auto now = rate_now(standing, *setup);
  const auto plan = plan_for(standing.open.config, *setup, standing.usable);
  if (!now || !plan) return best;
  best.speed = plan->plan.rate / *now;
  best.choice = plan->choice;
  // The precision never changes after the start.
  best.choice.precision = standing.choice.precision;
  best.choice.why = standing.choice.why;
  return best;
}

bool Replanner::pays(const Standing& standing) const {
  if (!best_ || !best_->is_of(standing)) return false;
  actors::reconciler::PlanChoice better;
  better.rate = outlook_.plan.rate * best_->speed;
  return actors::reconciler::pays(outlook_, better, env_.now(), limits_);
}

std::optional<RunChoice> Replanner::take() {
  const auto standing = look_();
  const std::lock_guard lock(mutex_);
  if (!standing || !pays(*standing)) return {};
  return best_->choice;
}

void Replanner::over(bool has_switched) {
  const std::lock_guard lock(mutex_);
  if (has_switched)
    outlook_.saves_since_switch = 0;
  else
    since_.reset();
}

void Replanner::node_came() { changed(true); }
void Replanner::node_went() { changed(false); }

void Replanner::changed(bool has_come) {
  {
    const std::lock_guard lock(mutex_);
    const auto now = env_.now();
    outlook_.changes.push_back(now);
    if (outlook_.changes.size() > most_changes) outlook_.changes.erase(outlook_.changes.begin());
    went_ = has_come ? std::nullopt : std::optional(now);
  }
  if (has_come) look();
}

void Replanner::saved() {
  {
    const std::lock_guard lock(mutex_);
    ++outlook_.saves_since_switch;
  }
  look();
}

void Replanner::stepped(std::int64_t step, std::int64_t steps, double seconds) {
  const std::lock_guard lock(mutex_);
  outlook_.decided = step;
  limits_.steps = steps;
  outlook_.plan.rate = 1 / std::max(1e-6, seconds);
  // Measures the cost of this switch, by which the next one is judged.
  if (since_ && outlook_.saves_since_switch == 0)
    limits_.hold_time = env_.now() - *std::exchange(since_, {});
}

}  // namespace troupe::apps
