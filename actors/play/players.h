#pragma once

#include <caf/all.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/assembled.h"
#include "actors/caf_shim.h"
#include "actors/messages.h"
#include "actors/run_spec.h"
#include "actors/standstill.h"
#include "core/result.h"

namespace troupe::actors {

/// Returns "device 1 of replica 0", or "device 1" if there is one replica.
std::string device_title(const RunSpec& spec, int replica, int device);

/// A player, and its state as far as known.
struct Player {
  PlayerId id;
  caf::actor actor;
  Standing standing;
};

struct Team {
  PlayersPtr players;
  std::vector<Player> all;  // All but the supervisor and the recorder.
  /// Set if the players can play at once; else the supervisor receives it later.
  std::optional<Assembled> assembled = {};
};

/// The constants of all attempts of a run.
struct AttemptContext {
  RunSpecPtr spec;
  caf::actor supervisor;
  std::shared_ptr<Ending> ending;
};

/// The states from which an attempt may start, except those in nodes' memory. A state in memory is
/// as good as a checkpoint if the ledger has its steps.
struct Origin {
  std::int64_t saved = 0;                // The step of the newest known checkpoint; 0: none.
  std::vector<std::int64_t> older = {};  // Steps of older ones, the oldest first.
  std::int64_t committed = 0;            // Steps in the ledger.
  /// Loads the checkpoint of a step; of step 0: the state from which the run starts. Called on one
  /// thread until assembled.
  std::function<Result<StartPoint>(std::int64_t step)> load;

  /// Returns the steps of all checkpoints, the oldest first.
  std::vector<std::int64_t> all_saved() const;
};

/// Returns all players, in the same order everywhere: replicas (devices, loaders), then optimizers.
std::vector<PlayerId> players_of(const RunSpec& spec);
/// Returns "device 1 of replica 0", "optimizer of stage 2", "optimizer of section 1 of stage 2".
std::string title_of(const RunSpec& spec, PlayerId player);

/// Spawns a player in this process. Only optimizers use `start`: their part of the state.
caf::actor spawn_player(const caf_shim::Spawner& spawner, const RunSpecPtr& spec, PlayerId player,
                        StartPoint start);

/// Spawns all players of an attempt in this process and introduces them to one another.
Team spawn_team(const caf_shim::Spawner& spawner, const AttemptContext& attempt_context,
                int attempt, const StartPoint& start);

/// Builds the list of players. `of` makes or finds each one; they are not introduced yet.
/// `keepers`: by optimizer, the processes that keep copies of its state. `adders`: see Cast.
Team team_of(const AttemptContext& attempt_context, int attempt,
             const std::function<caf::actor(PlayerId)>& of,
             const std::vector<std::vector<int>>& keepers = {},
             std::vector<std::shared_ptr<transport::Adder>> adders = {});

}  // namespace troupe::actors
