#pragma once

#include <caf/all.hpp>
#include <functional>
#include <string>
#include <vector>

#include "actors/cause.h"
#include "actors/dispatch.h"
#include "actors/executor.h"
#include "actors/player_id.h"
#include "core/memory_pool.h"

namespace troupe::actors {

/// Takes a message to the process of a player. Must not wait. An error means that it cannot be
/// reached any more.
using Carry = std::function<Status(PlayerId to, Dispatch dispatch)>;

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
/// `memory` outlives it and all that it sends, and so do `executors`, some of which may be null:
/// those of the devices whose tensors it is given.
caf::actor spawn_envoy(caf::actor_system& system, PlayerId player, Carry carry, MemoryPool& memory,
                       std::vector<Executor*> executors = {});
/// Whether this is why an envoy ended: a process was lost.
bool is_lost(const caf::error& reason);

}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::PlayerEnded)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::TensorsBrought)
