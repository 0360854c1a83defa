#pragma once

#include <caf/all.hpp>
#include <functional>
#include <string>
#include <vector>

#include "actors/caf_shim.h"
#include "actors/end_cause.h"
#include "actors/executor.h"
#include "actors/nodes/wire_message.h"
#include "actors/player_id.h"
#include "core/memory/memory_pool.h"

namespace troupe::actors {

/// Sends a message to the process of a player. Must not block. Fails if the process cannot be
/// reached any more.
using Carry = std::function<Status(PlayerId to, WireMessage wire_message)>;
/// Returns whether the message's tensors go from device to device. Other tensors are first copied
/// to the host.
using IsLinked = std::function<bool(PlayerId to, const WireMessage& wire_message)>;

/// The way in which a proxy's messages reach its player.
struct Route {
  Carry carry;
  IsLinked is_linked = {};                // Empty: no tensors.
  std::vector<Executor*> executors = {};  // Indexed by device; null if it is not here.
};

/// Tells a proxy that its player has ended, by itself or with its process.
struct PlayerEnded {
  std::string why;
  EndCause cause = EndCause::failed;
};

/// From a device's executor to a proxy: the tensors to send are in host memory now.
struct TensorsBrought {
  std::vector<Tensor> tensors;
};

/// Spawns a proxy, which stands for a player of another process. It forwards all messages to that
/// player and ends when the player ends, for the same reason; so no player knows where its peers
/// are. `memory` and the executors must outlive the proxy and all that it sends.
caf::actor spawn_proxy(const caf_shim::Spawner& spawner, PlayerId player, Route route,
                       MemoryPool& memory);

}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::PlayerEnded)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::TensorsBrought)
