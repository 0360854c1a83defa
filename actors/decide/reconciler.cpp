#include "actors/decide/reconciler.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "actors/decide/reaction.h"
#include "core/units.h"

namespace troupe::actors::reconciler {
namespace {

constexpr Duration remembered_changes = std::chrono::hours(1);
// The prior for a new cluster: one change in the hour before.
constexpr double prior_changes = 1;

constexpr std::array row_names = {
    "boot_fresh",        "boot_again",
    "boot_torn",         "boot_damaged",
    "gather_waits",      "gather_enough",
    "gather_adopt",      "gather_lost",
    "gather_again",      "gather_over",
    "plan_ready",        "plan_none",
    "plan_late",         "loss_under_way",
    "arrival_under_way", "prepared_some",
    "prepared_all",      "prepare_failed",
    "loaded_some",       "loaded_all",
    "load_failed_node",  "load_failed_checkpoint",
    "load_differs",      "run_decided",
    "run_loss",          "run_spare_lost",
    "pair_lost",         "run_suspect",
    "run_notice",        "run_notice_short",
    "run_arrival",       "run_better",
    "run_not_better",    "run_slow",
    "step_failed",       "step_poisoned",
    "save_begins",       "save_still_goes_on",
    "save_written",      "save_complete",
    "save_failed",       "save_given_up",
    "switch_begins",     "switch_dropped",
    "drain_begins",      "drain_lost",
    "recover_waits",     "recover_gathers",
    "recover_plans",     "recover_merges",
    "recover_futile",    "recover_hopeless",
    "suspend_begins",    "suspend_waits",
    "suspend_tries",     "suspend_enough",
    "suspend_over",      "stop_asked",
    "stop_done",         "run_done",
    "drain_asked",       "journal_failed",
    "journal_over",      "deposed",
    "of_the_past",
};
static_assert(row_names.size() == static_cast<std::size_t>(Row::of_the_past) + 1);

}  // namespace

std::string_view to_string(Row row) { return row_names[static_cast<std::size_t>(row)]; }

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (std::size_t row = 0; row < row_names.size(); ++row) rows.push_back(static_cast<Row>(row));
  return rows;
}

namespace {

/// Drops nodes until no lost pair is left: first nodes with most lost pairs; of equals, the one
/// with the greater name.
void drop_lost_pairs(std::vector<Life>& lives, const State& state, Time now) {
  const auto has = [&](Life life) { return std::ranges::count(lives, life) > 0; };
  for (;;) {
    std::map<Life, int> lost;
    for (const auto& [pair, loss] : state.lost_pairs) {
      if (now >= loss.until || !has(pair.first) || !has(pair.second)) continue;
      ++lost[pair.first];
      ++lost[pair.second];
    }
    if (lost.empty()) return;
    const auto worst = std::ranges::max_element(lost, {}, [&](const auto& entry) {
      return std::pair(entry.second, state.nodes.at(entry.first).name);
    });
    std::erase(lives, worst->first);
  }
}

}  // namespace

std::vector<Life> usable(const State& state, Time now, const Limits& limits) {
  std::vector<Life> all, trusted;
  for (const auto& [life, node] : state.nodes) {
    if (node.use != Node::Use::free) continue;
    all.push_back(life);
    if (!state.strikes.quarantine_left(node.name, now)) trusted.push_back(life);
  }
  drop_lost_pairs(all, state, now);
  drop_lost_pairs(trusted, state, now);
  const bool suffice = static_cast<int>(trusted.size()) >= limits.fewest;
  return suffice && !state.takes_all ? trusted : all;
}

Duration time_to_next_change(const State& state, Time now) {
  const auto recent = std::ranges::count_if(
      state.changes, [&](Time change) { return now - change <= remembered_changes; });
  const Duration watched = std::min<Duration>(now - state.begun, remembered_changes);
  const double hours = std::chrono::duration<double, std::ratio<3600>>(watched).count();
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::ratio<3600>>(
      (hours + 1) / (static_cast<double>(recent) + prior_changes)));
}

bool pays(const State& state, const PlanChoice& better, Time now, const Limits& limits) {
  if (state.saves_since_switch < limits.saves_between_switches) return false;
  if (better.rate <= 0) return false;
  const double gain = 1 - state.plan.rate / better.rate;
  if (gain < limits.least_gain) return false;
  const auto steps_left = static_cast<double>(limits.steps - state.decided);
  const double left = steps_left / better.rate;
  const double change = in_seconds(time_to_next_change(state, now));
  return gain * std::min(left, change) > in_seconds(limits.hold_time);
}

Answer react(State state, const Event& event, Time now, const Limits& limits) {
  return Reaction(std::move(state), now, limits).to(event);
}

}  // namespace troupe::actors::reconciler
