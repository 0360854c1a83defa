#include "actors/nodes/loss_plans.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace troupe::actors {

namespace {

/// Adds the sharings after the loss of one node of each core count.
void add_losses(const Sharing& sharing, std::vector<Sharing>& all) {
  if (sharing.cores.size() < 2) return;
  for (std::size_t i = 0; i < sharing.cores.size(); ++i) {
    if (i > 0 && sharing.cores[i] == sharing.cores[i - 1]) continue;
    if (all.size() == most_foreseen) return;
    Sharing left = sharing;
    left.cores.erase(left.cores.begin() + static_cast<std::ptrdiff_t>(i));
    if (std::ranges::count(all, left) == 0) all.push_back(std::move(left));
  }
}

}  // namespace

std::vector<Sharing> neighbours_of(const Sharing& sharing) {
  // After two losses, at most two of the nodes without work get some.
  Sharing now = sharing;
  now.cores.resize(std::min(now.cores.size(), now.seats() + 2));
  std::vector<Sharing> all{now};
  add_losses(now, all);
  for (std::size_t one = 1, ones = all.size(); one < ones; ++one)
    add_losses(Sharing(all[one]), all);
  std::vector<Sharing> parts;
  for (auto& one : all) {
    auto part = relevant_part(std::move(one));
    if (std::ranges::count(parts, part) == 0) parts.push_back(std::move(part));
  }
  return parts;
}

void LossPlans::look_ahead(const Sharing& now) {
  auto wanted = neighbours_of(now);
  if (wanted == wanted_) return;
  wanted_ = std::move(wanted);
  std::erase_if(found_,
                [&](const auto& found) { return std::ranges::count(wanted_, found.first) == 0; });
  search();
}

Shares LossPlans::shares(const Sharing& wanted) const {
  if (const auto found = found_.find(relevant_part(wanted)); found != found_.end())
    return found->second;
  return share_out(wanted, Search::prompt);
}

bool LossPlans::foresaw(const Sharing& wanted) const {
  return found_.contains(relevant_part(wanted));
}

/// Returns the next sharing to search for.
std::optional<Sharing> LossPlans::next() const {
  const auto left =
      std::ranges::find_if(wanted_, [&](const Sharing& one) { return !found_.contains(one); });
  return left == wanted_.end() ? std::nullopt : std::optional(*left);
}

/// Searches for one sharing at a time, so that the end of the loop waits for one only.
void LossPlans::search() {
  if (is_searching_) return;
  const auto sharing = next();
  if (!sharing) return;
  is_searching_ = true;
  const auto shares = std::make_shared<Shares>();
  loop_.aside(
      "loss plans", [sharing, shares] { *shares = share_out(*sharing, Search::thorough); },
      [this, sharing, shares] {
        is_searching_ = false;
        if (std::ranges::count(wanted_, *sharing) > 0) found_.emplace(*sharing, std::move(*shares));
        search();
      });
}

}  // namespace troupe::actors
