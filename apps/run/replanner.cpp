#include "apps/run/replanner.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "apps/run/plan_request.h"
#include "apps/run/run_setup.h"
#include "schedules/plan/plan.h"
#include "schedules/plan/plan_format.h"

namespace troupe::apps {
namespace {

constexpr std::chrono::milliseconds looks_at_least_every(2000);
constexpr std::chrono::milliseconds looks_soon(100);

std::vector<std::uint64_t> incarnations(const std::vector<actors::NodeHere>& nodes) {
  std::vector<std::uint64_t> all;
  all.reserve(nodes.size());
  for (const auto& node : nodes) all.push_back(node.incarnation);
  std::ranges::sort(all);
  return all;
}

std::vector<std::string> names_of(const std::vector<actors::NodeHere>& nodes) {
  std::vector<std::string> names;
  names.reserve(nodes.size());
  for (const auto& node : nodes) names.push_back(node.name);
  std::ranges::sort(names);
  return names;
}

/// The planner's forecast for the plan in force.
struct Forecast {
  schedules::Plan plan;
  double computing = 0;  // See computing_of().
};

/// `slowness`: how many times longer passes take than the planner expects.
Result<Forecast> forecast_now(const Replanner::Standing& standing, const RunSetup& setup,
                              double slowness) {
  auto loaded = standing.open;
  take(standing.choice, loaded);
  const auto request = live_request(loaded.config, setup, standing.used, slowness);
  if (!request) return request.error();
  auto plan = schedules::make_plan(*request);
  if (!plan) return plan.error();
  const double computing = computing_of(*request, *plan);
  return Forecast{std::move(*plan), computing};
}

double forecast_seconds(const schedules::Plan& plan) { return plan.micro_batches / plan.rate; }

/// Returns the number of nodes that a plan uses.
std::size_t nodes_of(const schedules::Plan& plan) {
  std::set<int> nodes;
  for (const auto& replica : plan.replicas)
    for (const auto place : replica.places) nodes.insert(place.node);
  return nodes.size();
}

/// Names a plan. The same plan on more nodes is another one.
std::string name_on_nodes(const RunChoice& choice, std::size_t nodes) {
  return choice.plan_name() + " on " + std::to_string(nodes);
}

actors::ForecastPlan forecast_of(const schedules::Plan& plan, std::string name) {
  return {.name = std::move(name),
          .stages = static_cast<int>(plan.stages.size()),
          .chunks = plan.chunks,
          .devices = plan.devices(),
          .seconds = forecast_seconds(plan),
          .memory = plan.most_memory()};
}

std::vector<actors::MeasuredLink> links_of(const std::vector<actors::NodeHere>& nodes) {
  std::vector<actors::MeasuredLink> all;
  for (const auto& node : nodes) all.insert(all.end(), node.links.begin(), node.links.end());
  return all;
}

/// Returns whether measurements may change the plan. The plan of an asynchronous run changes its
/// results, so it must not depend on measurements.
bool uses_measurements(const config::RunConfig& config) {
  return config.elastic.replan == config::RunConfig::Elastic::Replan::measured &&
         !is_asynchronous(config);
}

/// Returns whether two figures say the same to the planner.
bool are_alike(double one, double other) {
  constexpr double factor = 1.25;
  return one <= other * factor && other <= one * factor;
}

}  // namespace

bool Replanner::Best::is_of(const Standing& standing) const {
  return used == incarnations(standing.used) && usable == incarnations(standing.usable) &&
         before.has_plan_of(standing.choice);
}

/// Returns whether the links that it was made for are about as they were.
bool Replanner::Best::has_links_of(const Standing& standing) const {
  return std::ranges::equal(
      links, links_of(standing.usable), [](const auto& one, const auto& other) {
        return one.host == other.host && are_alike(one.best.latency, other.best.latency) &&
               are_alike(one.best.bytes_per_second.value_or(0),
                         other.best.bytes_per_second.value_or(0));
      });
}

Replanner::Replanner(Env& env, storage::Files& files, std::chrono::milliseconds patience, Look look,
                     Begin begin)
    : env_(env),
      files_(files),
      patience_(patience),
      look_(std::move(look)),
      begin_(std::move(begin)),
      changes_(env.now()),
      loop_(env.make_loop({"replanner"})) {
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
  bool is_new = false;
  {
    const std::lock_guard lock(mutex_);
    // A node that was lost and came back is as fast as before.
    if (best_ && best_->names != names_of(standing->usable)) times_.forget();
    times_.note(name_on_nodes(standing->choice, standing->used.size()), env_.now());
    is_new = !best_ || !best_->is_of(*standing) || is_refuted(*standing);
  }
  // Only the loop changes `best_`.
  if (is_new) {
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

/// Returns whether measurements ask for another look at the nodes and the plan. The caller holds
/// the lock.
bool Replanner::is_refuted(const Standing& standing) const {
  if (!uses_measurements(standing.open.config)) return false;
  const bool has_figures = times_.measured().has_value();
  return times_.is_off(best_->expected) || !best_->has_links_of(standing) ||
         (has_figures && !best_->has_figures);
}

Replanner::Best Replanner::best_for(const Standing& standing) {
  Best best{.used = incarnations(standing.used),
            .usable = incarnations(standing.usable),
            .names = names_of(standing.usable),
            .before = standing.choice,
            .choice = standing.choice,
            .links = links_of(standing.usable)};
  const auto& config = standing.open.config;
  auto setup = set_up(files_, config);
  if (!setup) return best;
  // The precision never changes after the start.
  setup->precision = actors::precision_named(standing.choice.precision);
  setup->times = standing.times;
  std::optional<actors::PlanTimes::Figures> figures;
  if (uses_measurements(config)) {
    const std::lock_guard lock(mutex_);
    figures = times_.measured();
    best.has_figures = figures.has_value();
    // Other plans were measured on these nodes, so this plan is judged by a measurement, too.
    if (!figures && times_.knows_plans(env_.now())) return best;
  }
  auto now = forecast_now(standing, *setup, 1);
  if (!now) return best;
  best.expected = figures ? figures->step : forecast_seconds(now->plan);
  best.corrects = figures && !are_alike(figures->step, forecast_seconds(now->plan));
  double slowness = 1;
  if (figures && figures->computing && now->computing > 0) {
    constexpr double most = 1000;
    slowness = std::clamp(*figures->computing / now->computing, 1 / most, most);
    now = forecast_now(standing, *setup, slowness);
    if (!now) return best;
  }
  const auto live = plan_for(config, *setup, standing.usable, slowness);
  if (!live) return best;
  if (!figures) {
    best.speed = live->plan.rate / now->plan.rate;
    best.choice = live->choice;
  } else {
    std::vector<actors::ForecastPlan> plans;
    for (const auto& plan : live->candidates)
      plans.push_back(forecast_of(plan, name_on_nodes(choice_of(config, plan), nodes_of(plan))));
    const auto in_force =
        forecast_of(now->plan, name_on_nodes(standing.choice, standing.used.size()));
    std::optional<actors::PlanTimes::Choice> better;
    {
      const std::lock_guard lock(mutex_);
      better = times_.better(plans, in_force, env_.now());
    }
    if (!better) return best;
    const auto& plan = live->candidates[better->plan];
    best.choice = choice_of(config, plan);
    best.speed = figures->step / better->seconds;
    best.basis = better->basis;
    best.choice.plan_why =
        "a step of the plan before took " + schedules::show(schedules::Seconds(figures->step)) +
        ", and one of this plan " +
        (better->basis == Basis::measurement ? "took " : "is expected to take ") +
        schedules::show(schedules::Seconds(better->seconds));
  }
  best.choice.precision = standing.choice.precision;
  best.choice.why = standing.choice.why;
  return best;
}

bool Replanner::pays(const Standing& standing) const {
  if (!best_ || !best_->is_of(standing)) return false;
  auto change = outlook_;
  change.better_rate = outlook_.rate * best_->speed;
  change.time_to_next_change = changes_.time_to_next(env_.now());
  auto limits = limits_;
  // A wrong forecast is no reason to wait for saves.
  if (best_->corrects && times_.may_hurry(env_.now())) limits.saves_between = 0;
  return actors::decide::pays(change, limits);
}

std::optional<RunChoice> Replanner::take() {
  const auto standing = look_();
  const std::lock_guard lock(mutex_);
  if (!standing || !pays(*standing)) return {};
  return best_->choice;
}

void Replanner::over(bool has_switched) {
  const std::lock_guard lock(mutex_);
  if (!has_switched) return since_.reset();
  has_switched_ = true;
  outlook_.saves_since_last = 0;
  if (best_) times_.changed_over(best_->basis, env_.now());
}

void Replanner::node_came() { changed(true); }
void Replanner::node_went() { changed(false); }

void Replanner::changed(bool has_come) {
  {
    const std::lock_guard lock(mutex_);
    const auto now = env_.now();
    changes_.add(now);
    went_ = has_come ? std::nullopt : std::optional(now);
  }
  if (has_come) look();
}

void Replanner::saved() {
  {
    const std::lock_guard lock(mutex_);
    ++outlook_.saves_since_last;
  }
  look();
}

void Replanner::placed(const RunChoice& choice, const std::vector<actors::NodeHere>& nodes) {
  std::string plan_and_nodes = choice.plan_name();
  for (const auto& name : names_of(nodes)) plan_and_nodes += " " + name;
  const std::lock_guard lock(mutex_);
  times_.begin(plan_and_nodes);
}

void Replanner::stepped(std::int64_t step, std::int64_t steps, double seconds,
                        std::optional<double> computing) {
  const std::lock_guard lock(mutex_);
  times_.add(seconds, computing);
  outlook_.steps_left = steps - step;
  outlook_.rate = 1 / std::max(1e-6, seconds);
  // Measures the cost of this switch, by which the next one is judged.
  if (since_ && std::exchange(has_switched_, false))
    limits_.cost = env_.now() - *std::exchange(since_, {});
}

}  // namespace troupe::apps
