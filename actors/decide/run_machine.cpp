#include "actors/decide/run_machine.h"

#include <algorithm>
#include <array>
#include <utility>

#include "actors/decide/reaction.h"

namespace troupe::actors::decide {
namespace {

constexpr std::array row_names = {
    "boot_fresh",
    "boot_again",
    "boot_torn",
    "gather_waits",
    "gather_enough",
    "gather_lost",
    "gather_again",
    "gather_over",
    "plan_ready",
    "plan_none",
    "arrival_under_way",
    "loss_under_way",
    "prepared_some",
    "prepared_all",
    "prepare_failed",
    "loaded",
    "load_failed_node",
    "load_failed_source",
    "load_late",
    "step_done",
    "run_loss",
    "run_arrival",
    "spare_lost",
    "pair_lost",
    "node_unheard",
    "node_heard",
    "node_cordoned",
    "node_uncordoned",
    "player_failed",
    "fails_again",
    "fails_too_often",
    "node_crashes",
    "crashes_again",
    "boundary_asked",
    "boundary_passed",
    "pause_begins",
    "pause_over",
    "save_begins",
    "save_waits",
    "save_collected",
    "saved",
    "save_failed",
    "change_due",
    "change_made",
    "change_refused",
    "spike_found",
    "spike_ends",
    "step_skipped",
    "stop_asked",
    "stop_done",
    "run_done",
    "run_failed",
    "attempt_ended",
    "recover_gathers",
    "recover_plans",
    "recover_merges",
    "recover_futile",
    "recover_hopeless",
    "suspend_begins",
    "suspend_waits",
    "suspend_tries",
    "suspend_enough",
    "suspend_over",
    "journal_failed",
    "journal_over",
    "of_the_past",
};
static_assert(row_names.size() == static_cast<std::size_t>(Row::of_the_past) + 1);

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

const char* to_string(Row row) { return row_names[static_cast<std::size_t>(row)]; }

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (std::size_t row = 0; row < row_names.size(); ++row) rows.push_back(static_cast<Row>(row));
  return rows;
}

std::vector<Life> usable(const State& state, Time now, const Limits& limits) {
  std::vector<Life> all, trusted;
  for (const auto& [life, node] : state.nodes) {
    if (!node.is_usable()) continue;
    all.push_back(life);
    if (!state.strikes.quarantine_left(node.name, now)) trusted.push_back(life);
  }
  drop_lost_pairs(all, state, now);
  drop_lost_pairs(trusted, state, now);
  const bool suffice = static_cast<int>(trusted.size()) >= limits.fewest;
  return suffice && !state.takes_all ? trusted : all;
}

Answer react(State state, const Event& event, Time now, const Limits& limits) {
  return Reaction(std::move(state), now, limits).to(event);
}

}  // namespace troupe::actors::decide
