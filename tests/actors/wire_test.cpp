// Players of several processes, as far as they can tell: all that would go over a wire becomes
// dispatches, which are counted.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "actors/assembled.h"
#include "actors/caf_shim.h"
#include "actors/checkpoints.h"
#include "actors/exchange.h"
#include "actors/nodes/lineup.h"
#include "actors/nodes/placement.h"
#include "actors/nodes/proxy.h"
#include "actors/nodes/wire_message.h"
#include "actors/play/players.h"
#include "catch.h"
#include "little_run.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

/// Bytes of tensors that each process has sent to others: gradients to optimizers, and weights from
/// them.
using Traffic = std::map<int, std::size_t>;

/// A cast whose players know one another by envoys, as they do in processes of their own.
class Wires final : public PlayerHost {
 public:
  Wires(int nodes, MemoryPool& memory) : nodes_(nodes), memory_(memory) {}

  const Traffic& exchanged() const { return exchanged_; }

  Team begin(caf::actor_system& system, const AttemptContext& attempt_context, int attempt,
             Origin origin) override {
    auto start = *origin.load();
    spec_ = attempt_context.spec;
    const std::vector<NodeHere> nodes(static_cast<std::size_t>(nodes_));
    const auto sharing = sharing_of(*spec_, nodes, nodes_);
    placement_ = line_up(*spec_, nodes, share_out(sharing, Search::thorough)).placement;
    Team real = team_of(attempt_context, attempt, [&](PlayerId id) {
      const bool is_optimizer = id.kind == PlayerId::Kind::optimizer;
      return spawn_player(system, spec_, id,
                          is_optimizer ? part_of(start, *spec_, id.index) : StartPoint{});
    });
    players_.clear();
    for (const auto& [id, actor, standing] : real.all) players_[id] = caf_shim::weak(actor);
    for (int process = 0; process < nodes_; ++process) {
      const auto team = team_of(attempt_context, attempt, [&](PlayerId id) {
        const auto actor = caf::actor_cast<caf::actor>(players_.at(id));
        return placement_.process_of(id) == process
                   ? actor
                   : spawn_proxy(system, id, {carry(process)}, memory_);
      });
      for (const auto& player : team.all) caf_shim::post(player.actor, Meet{team.players});
    }
    caf_shim::post(attempt_context.supervisor, Assembled{.attempt = attempt, .step = start.step});
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
      return deliver(std::move(wire_message), {from, to, placement_, bounds}, *spec_, player);
    };
  }

  int nodes_;
  MemoryPool& memory_;
  RunSpecPtr spec_;
  Placement placement_;
  std::map<PlayerId, caf::weak_actor_ptr> players_;
  Traffic exchanged_;
};

struct Told {
  Digest weights;
  Traffic exchanged;
};

Told play_over_wires(const Piece& piece, int nodes) {
  MemoryPool memory;
  LittleRun run(piece);
  Scene scene(run, 7);
  Wires wires(nodes, memory);
  scene.spec().player_host = &wires;
  scene.begin();
  const auto played = scene.finish();
  INFO(played.outcome.why);
  REQUIRE(played.outcome.how == Outcome::How::done);
  CHECK(played.bytes_left == 0);
  CHECK(memory.counters().bytes_in_use == 0);
  return {played.weights, wires.exchanged()};
}

Piece piece_of(const std::string& model, int stages, int replicas, Exchange exchange) {
  RoundShape shape;
  shape.schedule = "1f1b";
  shape.stages = stages;
  shape.replicas = replicas;
  shape.micro_batches = shape.groups = 8;
  Piece piece = Piece::of(model, shape);
  piece.exchange = exchange;
  return piece;
}

/// What one more step sends.
Traffic in_a_step(Piece piece, int nodes) {
  piece.steps = 3;
  auto more = play_over_wires(piece, nodes).exchanged;
  piece.steps = 2;
  for (const auto& [process, bytes] : play_over_wires(piece, nodes).exchanged)
    more[process] -= bytes;
  return more;
}

}  // namespace

TEST_CASE("a run over wires has the bits of a plain loop, however it exchanges", "[actors]") {
  for (const std::string model : {"wide", "gpt2", "resnet"}) {
    const auto wanted = LittleRun(piece_of(model, 1, 1, Exchange::server)).plainly();
    for (const auto exchange : {Exchange::all_to_all, Exchange::server})
      for (const int stages : {1, 2})
        for (const int replicas : {2, 4})
          for (const int nodes : {2, 3, stages * replicas}) {
            const bool is_server = exchange == Exchange::server;
            CAPTURE(model, stages, replicas, nodes, is_server);
            CHECK(play_over_wires(piece_of(model, stages, replicas, exchange), nodes).weights ==
                  wanted);
          }
  }
}

TEST_CASE("what overflows in fp16 is skipped by all, over wires too", "[actors]") {
  const auto wanted = LittleRun(piece_of("gpt2", 1, 1, Exchange::server).in_fp16(8)).plainly();
  for (const auto exchange : {Exchange::all_to_all, Exchange::server})
    for (const int nodes : {2, 4}) {
      CAPTURE(nodes);
      CHECK(play_over_wires(piece_of("gpt2", 2, 2, exchange).in_fp16(8), nodes).weights == wanted);
    }
}

TEST_CASE("all send as much in an exchange with all; a server sends for all", "[actors]") {
  constexpr int replicas = 4;
  const auto piece = piece_of("wide", 1, replicas, Exchange::all_to_all);
  LittleRun run(piece);
  Scene scene(run, 1);
  std::vector<std::size_t> sections;
  std::size_t all = 0;
  for (const auto& section : scene.spec().sections[0]) {
    std::size_t bytes = 0;
    for (const auto& part : section.pieces)
      bytes += sizeof(float) * static_cast<std::size_t>(part.count);
    sections.push_back(bytes);
    all += bytes;
  }
  CHECK(all == 92'703 * sizeof(float));

  // Gradients of what others have, and weights of its own to each of them.
  const auto shared = in_a_step(piece, replicas);
  std::size_t sum = 0;
  for (int k = 0; k < replicas; ++k) {
    const auto own = sections[static_cast<std::size_t>(k)];
    CHECK(shared.at(k) == (all - own) + (replicas - 1) * own);
    sum += shared.at(k);
  }
  CHECK(sum == 2 * (replicas - 1) * all);

  const auto served = in_a_step(piece_of("wide", 1, replicas, Exchange::server), replicas);
  CHECK(served.at(0) == (replicas - 1) * all);
  for (int k = 1; k < replicas; ++k) CHECK(served.at(k) == all);
}
