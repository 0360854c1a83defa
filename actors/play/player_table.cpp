#include "actors/play/player_table.h"

#include <algorithm>
#include <utility>

namespace troupe::actors {

void PlayerTable::begin(Company company) {
  company_ = std::move(company);
  left_ = company_.players.size();
  for (const auto& player : company_.players) self_->watch(player.actor);
}

void PlayerTable::play(const Play& round) {
  const int devices = round.round->devices();
  const auto tell_to = [&](const std::vector<caf::actor>& group, int which) {
    self_->tell(group[static_cast<std::size_t>(which)], round);
  };
  for (int replica = 0; replica < round.round->replicas; ++replica) {
    for (int device = 0; device < devices; ++device)
      tell_to(cast().stages, replica * devices + device);
    tell_to(cast().inputs, replica);
    tell_to(cast().targets, replica);
  }
}

const Player* PlayerTable::ended(const caf::actor_addr& who) {
  const auto found = std::ranges::find_if(company_.players, [&](const Player& player) {
    return player.actor && player.actor.address() == who;
  });
  if (found == company_.players.end()) return nullptr;
  found->actor = nullptr;
  --left_;
  return &*found;
}

void PlayerTable::dismiss() {
  company_.cast = nullptr;
  for (const auto& player : company_.players)
    if (player.actor) caf_shim::kill(player.actor);
}

const Player* PlayerTable::some_left() const {
  const auto found = std::ranges::find_if(company_.players,
                                          [](const Player& player) { return bool(player.actor); });
  return found == company_.players.end() ? nullptr : &*found;
}

std::optional<PlayerId> PlayerTable::find(const std::string& title) const {
  const auto found = std::ranges::find_if(
      company_.players, [&](const Player& player) { return player.standing.who == title; });
  return found == company_.players.end() ? std::nullopt : std::optional(found->id);
}

const Standing* PlayerTable::heard(const Pulse& pulse) {
  const auto found = std::ranges::find_if(company_.players, [&](const Player& player) {
    return player.actor && player.id == pulse.who;
  });
  if (found == company_.players.end()) return nullptr;
  auto& standing = found->standing;
  standing.wait = pulse.wait;
  standing.patiences = pulse.patiences;
  standing.silent = 0;
  return &standing;
}

std::vector<Standing> PlayerTable::look() {
  std::vector<Standing> all;
  all.reserve(company_.players.size());
  for (auto& player : company_.players) {
    ++player.standing.silent;
    all.push_back(player.standing);
  }
  return all;
}

}  // namespace troupe::actors
