#pragma once

#include <caf/all.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "actors/recovery.h"
#include "actors/run_spec.h"
#include "core/result.h"

namespace troupe::actors {

/// "device 1 of replica 0"; where there is one replica, "device 1".
std::string device_title(const RunSpec& spec, int replica, int device);

/// An actor of a cast, and what is known of it.
struct Player {
  PlayerId id;
  caf::actor actor;
  Standing standing;
};

struct Company {
  CastPtr cast;
  std::vector<Player> players;  // All but the supervisor and the recorder.
};

/// What all attempts of a run have in common.
struct Backstage {
  RunSpecPtr spec;
  caf::actor supervisor;
  std::shared_ptr<Ending> ending;
};

/// From where an attempt may go on. What is in the memory of nodes is as good as what is on the
/// disk, as far as the ledger has its steps.
struct Origin {
  std::int64_t saved = 0;      // Steps at the newest state that can be loaded, as far as is known.
  std::int64_t committed = 0;  // Steps that the ledger has.
  std::function<Result<StartPoint>()> load;  // On any one thread, until the attempt is assembled.
};

/// Brings the players of an attempt together: in this process, or in those of others.
class Casting {
 public:
  virtual ~Casting() = default;
  /// Must not wait. A player that cannot come ends, with the reason. Once all are there, the
  /// supervisor is told so by Assembled.
  virtual Company begin(caf::actor_system& system, const Backstage& backstage, int attempt,
                        Origin origin) = 0;
  /// A player has failed, for this reason. The name of the node that it was on, where the attempts
  /// that follow do without that for a while.
  virtual std::optional<std::string> set_aside(PlayerId, const std::string& /*why*/) { return {}; }
  /// The processes of a node have ended again and again. Whether the attempts that follow do
  /// without it for a while; not if the others are too few.
  virtual bool strike_node(const std::string& /*node*/, const std::string& /*why*/) {
    return false;
  }
  /// A player has said what it must not say. Its node is struck for it; the run goes on.
  virtual void refuse(PlayerId, const std::string& /*why*/) {}
  /// So many steps are done.
  virtual void committed(std::int64_t /*step*/) {}
  /// The run has ended, in this way: nobody need know anything of it any more, but where it is to
  /// go on later.
  virtual void over(Outcome::How) {}
};

/// The same list in all processes: by replica its devices and its loaders, then the optimizers.
std::vector<PlayerId> players_of(const RunSpec& spec);
/// "device 1 of replica 0", "optimizer of stage 2", "optimizer of section 1 of stage 2".
std::string title_of(const RunSpec& spec, PlayerId player);

/// Spawns a player in this process. `start` is for optimizers, each its part.
caf::actor spawn_player(caf::actor_system& system, const RunSpecPtr& spec, PlayerId player,
                        StartPoint start);

/// Spawns all players of an attempt here, and lets them meet.
Company spawn_company(caf::actor_system& system, const Backstage& backstage, int attempt,
                      const StartPoint& start);

/// Who plays what. `of` makes or finds each player; they have not met yet. `keepers`: by optimizer
/// the processes that keep copies of its state. `adders`: as a cast has them.
Company company_of(const Backstage& backstage, int attempt,
                   const std::function<caf::actor(PlayerId)>& of,
                   const std::vector<std::vector<int>>& keepers = {},
                   std::vector<std::shared_ptr<transport::Adder>> adders = {});

}  // namespace troupe::actors
