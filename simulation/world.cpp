#include "simulation/world.h"

#include <array>

#include "storage/checkpoint/checkpoint.h"

namespace troupe::simulation {
namespace {

constexpr std::array<std::string_view, bugs> names = {
    "none",
    "journal_not_synced",
    "epoch_not_recorded",
    "term_not_claimed",
    "old_epochs_heard",
    "old_contributions_heard",
    "decision_applied_twice",
    "decision_without_all",
    "work_not_stopped",
    "ledger_without_beginnings",
    "ledger_doubled",
    "ledger_not_synced",
    "commit_before_all_parts",
    "part_of_wrong_step",
    "newest_not_found",
    "position_off_by_one",
    "damage_not_seen",
    "deaths_not_heard",
    "timers_lost",
    "activated_before_loaded",
    "save_skipped_in_hold",
    "kept_beyond_ledger",
};

std::string number(std::uint64_t n) { return std::to_string(n); }

}  // namespace

std::string_view to_string(Bug bug) { return names[static_cast<std::size_t>(bug)]; }

void Monitor::told(std::uint64_t epoch, const std::vector<Life>& members) {
  const auto [known, is_new] = epochs_.try_emplace(epoch, members);
  if (!is_new && known->second != members)
    violated("epoch " + number(epoch) + " was told with two plans");
}

void Monitor::follows(Life life, std::uint64_t term, std::uint64_t epoch) {
  auto& [last_term, last_epoch] = followed_[life];
  if (term < last_term) violated("a node went back to term " + number(term));
  if (epoch < last_epoch) violated("a node went back to epoch " + number(epoch));
  last_term = term;
  last_epoch = epoch;
}

void Monitor::decided(std::int64_t step, std::uint64_t value) {
  const auto [known, is_new] = decided_.try_emplace(step, value);
  if (!is_new && known->second != value)
    violated("step " + std::to_string(step) + " was decided with two outcomes");
}

void Monitor::has(Life life, int unit, std::int64_t step, std::uint64_t weight) {
  if (weight != model_.after(step)[static_cast<std::size_t>(unit)])
    violated("after step " + std::to_string(step) + " unit " + std::to_string(unit) +
             " has other bits on node " + std::to_string(life) +
             " than a run without failures gives it");
}

std::string checkpoint_folder(std::int64_t step) {
  return std::string(folder) + "/checkpoints/" + storage::step_directory(step);
}

}  // namespace troupe::simulation
