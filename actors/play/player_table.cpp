#include "actors/play/player_table.h"

#include <algorithm>
#include <utility>

namespace troupe::actors {

void PlayerTable::begin(Team team) {
  team_ = std::move(team);
  left_ = team_.all.size();
  for (const auto& player : team_.all) self_->watch(player.actor);
}

void PlayerTable::play(const Play& round) {
  const int devices = round.round->devices();
  const auto tell_to = [&](const std::vector<caf::actor>& group, int which) {
    self_->tell(group[static_cast<std::size_t>(which)], round);
  };
  for (int replica = 0; replica < round.round->replicas; ++replica) {
    for (int device = 0; device < devices; ++device)
      tell_to(players().stages, replica * devices + device);
    tell_to(players().inputs, replica);
    tell_to(players().targets, replica);
  }
}

const Player* PlayerTable::ended(const caf::actor_addr& who) {
  const auto found = std::ranges::find_if(team_.all, [&](const Player& player) {
    return player.actor && player.actor.address() == who;
  });
  if (found == team_.all.end()) return nullptr;
  found->actor = nullptr;
  --left_;
  return &*found;
}

void PlayerTable::dismiss() {
  team_.players = nullptr;
  for (const auto& player : team_.all)
    if (player.actor) caf_shim::kill(player.actor);
}

const Player* PlayerTable::some_left() const {
  const auto found =
      std::ranges::find_if(team_.all, [](const Player& player) { return bool(player.actor); });
  return found == team_.all.end() ? nullptr : &*found;
}

std::optional<PlayerId> PlayerTable::find(const std::string& title) const {
  const auto found = std::ranges::find_if(
      team_.all, [&](const Player& player) { return player.standing.who == title; });
  return found == team_.all.end() ? std::nullopt : std::optional(found->id);
}

const Standing* PlayerTable::heard(const Pulse& pulse) {
  const auto found = std::ranges::find_if(
      team_.all, [&](const Player& player) { return player.actor && player.id == pulse.who; });
  if (found == team_.all.end()) return nullptr;
  auto& standing = found->standing;
  standing.wait = pulse.wait;
  standing.patiences = pulse.patiences;
  standing.silent = 0;
  return &standing;
}

std::vector<Standing> PlayerTable::look() {
  std::vector<Standing> all;
  all.reserve(team_.all.size());
  for (auto& player : team_.all) {
    ++player.standing.silent;
    all.push_back(player.standing);
  }
  return all;
}

}  // namespace troupe::actors
