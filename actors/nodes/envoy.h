#pragma once

#include <caf/all.hpp>
#include <functional>
#include <string>
#include <vector>

#include "actors/cause.h"
#include "actors/executor.h"
#include "actors/nodes/dispatch.h"
#include "actors/player_id.h"
#include "core/memory/memory_pool.h"

namespace troupe::actors {

/// Takes a message to the process of a player. Must not wait. An error means that it cannot be
/// reached any more.
using Carry = std::function<Status(PlayerId to, Dispatch dispatch)>;
/// Whether its tensors go there from the device where they lie. Those of others are brought to the
/// host before.
using IsLinked = std::function<bool(PlayerId to, const Dispatch& dispatch)>;

/// How what an envoy is told comes to its player.
struct Way {
  Carry carry;
  IsLinked is_linked = {};                // Empty: nothing is.
  std::vector<Executor*> executors = {};  // Of the devices whose tensors there are; null: of none.
};

/// To an envoy: whom it stands for has ended, and why; by itself, or with its process.
struct PlayerEnded {
  std::string why;
  Cause cause = Cause::failed;
};

/// A device's executor to an envoy: what it was about to send, with the host now.
struct TensorsBrought {
  std::vector<Tensor> tensors;
};

/// Stands in this process for a player that is in another one: what it is told goes there, and it
/// ends when that one does, for the same reason. So nobody who plays knows where the others are.
/// `memory` outlives it and all that it sends, and so do the executors.
caf::actor spawn_envoy(caf::actor_system& system, PlayerId player, Way way, MemoryPool& memory);

}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::PlayerEnded)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::TensorsBrought)
