#pragma once

#include <caf/all.hpp>
#include <cstddef>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "actors/caf_shim.h"
#include "actors/checkpoints.h"
#include "actors/lead/local_player_host.h"
#include "actors/nodes/lineup.h"
#include "actors/nodes/placement.h"
#include "actors/nodes/proxy.h"
#include "actors/nodes/wire_message.h"
#include "actors/play/players.h"

// Players believe that they are in several processes. Messages that would cross a process boundary
// become wire messages, which the test counts.
namespace troupe::actors {

/// Bytes of tensors that each process sent to other processes: gradients to optimizers, and weights
/// from them.
using BytesSent = std::map<int, std::size_t>;

/// Changes a message that one process sends to another.
using Lie = std::function<void(int from, WireMessage& wire_message)>;

/// Players that use proxies for one another, as in separate processes.
class Wires final : public LocalPlayerHost {
 public:
  Wires(int nodes, MemoryPool& memory, Lie lie = {})
      : nodes_(nodes), memory_(memory), lie_(std::move(lie)) {}

  const BytesSent& exchanged() const { return exchanged_; }

  Team spawn(const caf_shim::Spawner& spawner, const AttemptContext& attempt_context, int attempt,
             const StartPoint& start) override {
    spec_ = attempt_context.spec;
    const std::vector<NodeHere> nodes(static_cast<std::size_t>(nodes_));
    const auto sharing = sharing_of(*spec_, nodes, nodes_);
    placement_ = line_up(*spec_, nodes, share_out(sharing, Search::thorough)).placement;
    Team real = team_of(attempt_context, attempt, [&](PlayerId id) {
      const bool is_optimizer = id.kind == PlayerId::Kind::optimizer;
      return spawn_player(spawner, spec_, id,
                          is_optimizer ? part_of(start, *spec_, id.index) : StartPoint{});
    });
    players_.clear();
    for (const auto& [id, actor, standing] : real.all) players_[id] = caf_shim::weak(actor);
    for (int process = 0; process < nodes_; ++process) {
      const auto team = team_of(attempt_context, attempt, [&](PlayerId id) {
        const auto actor = caf::actor_cast<caf::actor>(players_.at(id));
        return placement_.process_of(id) == process
                   ? actor
                   : spawn_proxy(spawner, id, {carry(process)}, memory_);
      });
      for (const auto& player : team.all) caf_shim::post(player.actor, Meet{team.players});
    }
    return real;
  }

 private:
  Carry carry(int from) {
    return [this, from, bounds = RunBounds::of(*spec_)](PlayerId to,
                                                        WireMessage wire_message) -> Status {
      if (wire_message.type == StepGradients::type || wire_message.type == NewWeights::type)
        for (const auto& tensor : wire_message.tensors) exchanged_[from] += tensor.bytes();
      const auto player = caf::actor_cast<caf::actor>(players_.at(to));
      if (!player) return Error{"it has ended"};
      if (lie_) lie_(from, wire_message);
      auto delivered =
          deliver(std::move(wire_message), {from, to, placement_, bounds}, *spec_, player);
      // As a node does: one of the players that are there tells of it.
      if (!delivered)
        caf::anon_send(player,
                       caf::exit_msg{player.address(), caf::make_error(caf::sec::runtime_error,
                                                                       delivered.error().text)});
      return Done{};
    };
  }

  int nodes_;
  MemoryPool& memory_;
  Lie lie_;
  RunSpecPtr spec_;
  Placement placement_;
  std::map<PlayerId, caf::weak_actor_ptr> players_;
  BytesSent exchanged_;
};

}  // namespace troupe::actors
