#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "actors/caf_shim.h"
#include "actors/play/players.h"

namespace troupe::actors {

/// The supervisor's view of an attempt's players: which ones are alive, and what they wait for.
class PlayerTable {
 public:
  explicit PlayerTable(caf_shim::Base* self) : self_(self) {}

  /// Starts an attempt. No player of the one before may be left.
  void begin(Team team);
  const Players& players() const { return *team_.players; }
  /// Tells all stages and loaders to play this round next.
  void play(const Play& round);
  template <class Order>
  void tell_optimizers(const Order& order) {
    for (const auto& optimizer : players().optimizers) self_->tell(optimizer, order);
  }

  /// Notes an actor's end. Returns the player, or null if it was none.
  const Player* ended(const caf::actor_addr& who);
  /// Kills all players.
  void dismiss();
  bool have_gone() const { return left_ == 0; }
  void forget() { team_ = {}; }
  /// Returns a player that is left, or null if there is none.
  const Player* some_left() const;
  std::optional<PlayerId> find(const std::string& title) const;

  /// Notes what a player waits for. Returns its state, or null if it is none of the players.
  const Standing* heard(const Pulse& pulse);
  /// Returns the state of all players. Counts as silent those that send nothing between calls.
  std::vector<Standing> look();

 private:
  caf_shim::Base* self_;
  Team team_;
  std::size_t left_ = 0;
};

}  // namespace troupe::actors
