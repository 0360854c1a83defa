// States in the memory of nodes. Players believe that they are in several processes, some of which
// are lost with all their states.

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/assembled.h"
#include "actors/caf_shim.h"
#include "actors/checkpoints.h"
#include "actors/decide/sources.h"
#include "actors/lead/local_player_host.h"
#include "actors/nodes/attempt.h"
#include "actors/nodes/lineup.h"
#include "actors/nodes/placement.h"
#include "actors/nodes/proxy.h"
#include "actors/nodes/wire_message.h"
#include "actors/play/keeper_actor.h"
#include "actors/play/players.h"
#include "actors/play/recovery_points.h"
#include "actors/play/state_store.h"
#include "actors/tensor_bounds.h"
#include "catch.h"
#include "little_run.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

/// Nodes that live until a test loses them, over several attempts.
class Nodes final : public LocalPlayerHost {
 public:
  Nodes(World& world, int nodes, int copies) : copies_(copies) {
    for (int node = 0; node < nodes; ++node) {
      threads_.push_back(&world.make_executor());
      const auto borrowed = std::shared_ptr<Executor>(threads_.back(), [](Executor*) {});
      state_stores_.push_back(std::make_shared<StateStore>(borrowed));
    }
  }

  Team spawn(const caf_shim::Spawner& spawner, const AttemptContext& attempt_context, int attempt,
             const StartPoint& checkpoint) override {
    for (const auto& keeper : keepers_) caf_shim::kill(keeper);
    keepers_.clear();
    spec_ = attempt_context.spec;
    const int nodes = static_cast<int>(state_stores_.size());
    const std::vector<NodeHere> here(static_cast<std::size_t>(nodes));
    const auto sharing = sharing_of(*spec_, here, nodes);
    placement_ = line_up(*spec_, here, share_out(sharing, Search::thorough)).placement;
    std::vector<std::vector<KeptStep>> kept;
    for (const auto& state_store : state_stores_) kept.push_back(state_store->kept());
    std::vector<std::int64_t> saved;
    if (checkpoint.step > 0) saved.push_back(checkpoint.step);
    const auto source =
        sources_of({kept, placement_.optimizers, saved, committed_, checkpoint.step > 0})[0];
    const bool is_in_memory = source.from == StateSource::From::memory;
    StartPoint loaded;
    if (!is_in_memory) loaded = checkpoint;
    loaded.step = source.step;
    from_memory_ += is_in_memory ? 1 : 0;

    const std::vector<std::string> machines(static_cast<std::size_t>(nodes), "one");
    const auto homes = keepers_of(placement_.optimizers, machines, copies_);
    players_ = std::make_shared<Players>();
    Team real = team_of(attempt_context, attempt, [&](PlayerId id) {
      if (id.kind != PlayerId::Kind::optimizer) return spawn_player(spawner, spec_, id, {});
      if (!is_in_memory) return spawn_player(spawner, spec_, id, part_of(loaded, *spec_, id.index));
      const auto index = static_cast<std::size_t>(id.index);
      auto state = *state_stores_[static_cast<std::size_t>(source.givers[index])]->find(
          id.index, source.step);
      return spawn_player(spawner, spec_, id,
                          StartPoint{state.step, std::move(state.weights), std::move(state.moments),
                                     state.loss_scale});
    });
    for (const auto& [id, actor, standing] : real.all) (*players_)[id] = caf_shim::weak(actor);
    for (int node = 0; node < nodes; ++node) {
      auto& state_store = state_stores_[static_cast<std::size_t>(node)];
      state_store->begin(loaded.step);
      keepers_.push_back(spawn_keeper(spawner, state_store));
      (*players_)[{PlayerId::Kind::keeper, node}] = caf_shim::weak(keepers_.back());
    }
    for (int node = 0; node < nodes; ++node) {
      std::map<PlayerId, caf::actor> all;
      const auto team = team_of(
          attempt_context, attempt,
          [&](PlayerId id) {
            const auto actor = caf::actor_cast<caf::actor>(players_->at(id));
            return all[id] = placement_.process_of(id) == node
                                 ? actor
                                 : spawn_proxy(spawner, id, {carry(node)}, memory_);
          },
          homes);
      for (const auto& [id, actor] : all) caf_shim::post(actor, Meet{team.players});
    }
    std::size_t copies = 0;
    for (const auto& home : homes) copies += home.size();
    real.assembled = Assembled{.attempt = attempt,
                               .step = loaded.step,
                               .from_memory = is_in_memory,
                               .nodes_here = nodes,
                               .copies = static_cast<int>(copies)};
    return real;
  }
  void tell(decide::Event event) override {
    if (const auto* done = std::get_if<decide::StepDone>(&event)) committed_ = done->step;
    LocalPlayerHost::tell(std::move(event));
  }
  void over(Outcome::How) override { ++overs_; }
  void refuse(PlayerId, const std::string& why) override { refused_.push_back(why); }
  const std::vector<std::string>& refused() const { return refused_; }

  /// Loses the first nodes: their players and all their states.
  void lose(int nodes) {
    const auto loss = caf::make_error(caf::sec::cannot_connect_to_node, "its process is gone");
    for (const auto& [id, player] : *players_)
      if (placement_.process_of(id) < nodes)
        if (const auto actor = caf::actor_cast<caf::actor>(player))
          caf::anon_send(actor, caf::exit_msg{actor.address(), loss});
    state_stores_.erase(state_stores_.begin(), state_stores_.begin() + nodes);
  }
  /// Drops all states after the run. Returns the bytes that are still allocated.
  std::size_t forget() {
    keepers_.clear();
    state_stores_.clear();
    std::size_t bytes = memory_.counters().bytes_in_use;
    for (auto* thread : threads_) bytes += thread->memory().counters().bytes_in_use;
    return bytes;
  }
  int nodes() const { return static_cast<int>(state_stores_.size()); }
  /// Returns the most bytes that a node's states ever took.
  std::size_t most_kept(int node) const {
    return threads_[static_cast<std::size_t>(node)]->memory().counters().peak_in_use;
  }
  /// Returns the bytes of one state of each optimizer that a node keeps.
  std::size_t bytes_of_one_state_each(int node) const {
    const auto& state_store = *state_stores_[static_cast<std::size_t>(node)];
    std::map<int, std::size_t> bytes;
    for (const auto& [step, optimizers] : state_store.kept())
      for (const int optimizer : optimizers) {
        const auto state = *state_store.find(optimizer, step);
        bytes[optimizer] = 0;
        for (const auto* tensors : {&state.weights, &state.moments})
          for (const auto& one : *tensors) bytes[optimizer] += one.tensor.block()->bytes;
      }
    std::size_t sum = 0;
    for (const auto& [optimizer, of_one] : bytes) sum += of_one;
    return sum;
  }

  int from_memory() const { return from_memory_; }
  int overs() const { return overs_; }

 private:
  using Players = std::map<PlayerId, caf::weak_actor_ptr>;

  /// Returns a carrier. Messages that an attempt sends after its end do not reach the next attempt.
  Carry carry(int from) {
    return [this, from, players = players_, placement = placement_, bounds = RunBounds::of(*spec_)](
               PlayerId to, WireMessage wire_message) -> Status {
      const auto player = caf::actor_cast<caf::actor>(players->at(to));
      if (!player) return Error{"it has ended"};
      return deliver(std::move(wire_message), {from, to, placement, bounds}, *spec_, player);
    };
  }

  int copies_;
  std::int64_t committed_ = 0;  // Steps in the ledger.
  MemoryPool memory_;
  RunSpecPtr spec_;
  Placement placement_;
  std::vector<Executor*> threads_;
  std::vector<std::shared_ptr<StateStore>> state_stores_;  // Indexed by node.
  std::vector<caf::actor> keepers_;
  std::shared_ptr<Players> players_;  // The players of the newest attempt.
  int from_memory_ = 0;
  int overs_ = 0;
  std::vector<std::string> refused_;
};

Piece piece_in_memory(const std::string& model, const std::string& schedule, int stages,
                      int replicas) {
  RoundShape shape;
  shape.schedule = schedule;
  shape.stages = stages;
  shape.replicas = replicas;
  shape.micro_batches = shape.groups = 4;
  auto piece = Piece::of(model, shape);
  piece.steps = 12;
  return piece;
}

std::vector<Piece> pieces_in_memory() {
  std::vector<Piece> pieces = {
      piece_in_memory("mlp", "1f1b", 4, 1), piece_in_memory("gpt2", "zb-h1", 2, 2),
      piece_in_memory("resnet", "1f1b", 3, 1), piece_in_memory("mlp", "gpipe", 1, 4)};
  pieces[0].eval_every = 3;
  pieces[1].save_every = 5;
  pieces.push_back(piece_in_memory("gpt2", "1f1b", 2, 2).in_fp16(12));
  auto late = piece_in_memory("mlp", "pipedream", 3, 1);
  late.shape.flush_steps = 2;
  pieces.push_back(late);
  return pieces;
}

struct Lost {
  Played played;
  int from_memory = 0;
};

Lost play_and_lose(const Piece& piece, std::uint64_t seed, std::uint64_t after, int nodes,
                   int copies, int losses) {
  LittleRun run(piece);
  Scene scene(run, seed);
  Nodes there(scene.world(), nodes, copies);
  scene.spec().player_host = &there;
  scene.spec().copies = copies;
  scene.begin();
  scene.play(after);
  if (losses > 0) there.lose(losses);
  Lost lost{scene.finish(), there.from_memory()};
  CHECK(there.overs() == 1);
  CHECK(there.forget() == 0);
  return lost;
}

const Value& event_of(const Played& played, const std::string& type) {
  for (const auto& event : played.events)
    if (*event.find("type")->text() == type) return event;
  FAIL("no event " + type);
  return played.events.front();
}

}  // namespace

TEST_CASE("states in memory change no bit and take the memory of at most two states each",
          "[actors]") {
  constexpr int pauses = 4;
  int runs_with_two = 0;
  for (const auto& piece : pieces_in_memory()) {
    const auto wanted = play(piece, 1);
    REQUIRE(wanted.outcome.how == Outcome::How::done);
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      LittleRun run(piece);
      Scene scene(run, seed);
      Nodes there(scene.world(), 4, 2);
      scene.spec().player_host = &there;
      scene.spec().copies = 2;
      scene.begin();
      // The next recovery point is due once time has passed, which it does only in a pause.
      for (int pause = 0; pause < pauses; ++pause) {
        scene.play(wanted.messages / (pauses + 2));
        caf_shim::post(scene.supervisor(), Pause{});
        scene.world().run_until([&] { return scene.ended(); }, 2 * scene.spec().stall_patience);
        caf_shim::post(scene.supervisor(), Resume{});
      }
      const auto played = scene.finish();
      CAPTURE(piece.model, piece.shape.schedule, seed, played.outcome.why);
      REQUIRE(played.outcome.how == Outcome::How::done);
      CHECK(played.weights == wanted.weights);
      CHECK(played.bytes_left == 0);
      CHECK(there.from_memory() == 0);
      std::size_t kept = 0, one_each = 0;
      for (int node = 0; node < there.nodes(); ++node) {
        CAPTURE(node);
        CHECK(there.most_kept(node) <= 2 * there.bytes_of_one_state_each(node));
        kept += there.most_kept(node);
        one_each += there.bytes_of_one_state_each(node);
      }
      if (kept > one_each) ++runs_with_two;
      CHECK(there.overs() == 1);
      CHECK(there.forget() == 0);
    }
  }
  // Some optimizer had two states, so the bound matters.
  CHECK(runs_with_two >= 5);
}

TEST_CASE("a run usually resumes from memory after a node is lost", "[actors]") {
  int all = 0, in_memory = 0;
  std::int64_t redone = 0;
  for (const auto& piece : pieces_in_memory()) {
    const auto wanted = play_and_lose(piece, 1, 0, 4, 2, 0).played;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      const auto after = wanted.messages / 4 + seed * wanted.messages / 80;
      const auto [played, from_memory] = play_and_lose(piece, seed, after, 4, 2, 1);
      CAPTURE(piece.model, piece.shape.schedule, seed, played.outcome.why);
      REQUIRE(played.outcome.how == Outcome::How::done);
      CHECK(played.weights == wanted.weights);
      CHECK(played.bytes_left == 0);
      CHECK(played.audit.flaw.empty());
      CHECK(played.audit.steps == piece.steps);
      CHECK(played.told("stage.stalled").empty());
      if (played.told("warn").empty()) continue;  // The run had ended before.
      ++all;
      in_memory += from_memory;
      const Value recovered = event_of(played, "run.recovered");
      CHECK(*recovered.find("from")->text() == (from_memory ? "memory" : "checkpoint"));
      if (from_memory) redone += *recovered.find("redone")->integer();
    }
  }
  // In the remaining runs the loss came before the first recovery point.
  CAPTURE(all, in_memory, redone);
  CHECK(in_memory > all * 3 / 4);
  CHECK(redone < 5 * in_memory);
}

TEST_CASE("a state is read from disk if all its keepers are lost", "[actors]") {
  auto piece = piece_in_memory("mlp", "1f1b", 4, 1);
  piece.save_every = 5;
  const auto wanted = play_and_lose(piece, 1, 0, 4, 2, 0).played;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const auto after = wanted.messages / 2 + seed * wanted.messages / 80;
    const auto two = play_and_lose(piece, seed, after, 4, 2, 2);
    CHECK(two.played.weights == wanted.weights);
    CHECK(two.from_memory == 0);
    CHECK(two.played.audit.flaw.empty());
    const auto three = play_and_lose(piece, seed, after, 4, 3, 2);
    CHECK(three.played.weights == wanted.weights);
    CHECK(three.played.audit.flaw.empty());
  }
}

TEST_CASE("a report that comes twice or too early is refused", "[actors]") {
  const auto piece = piece_in_memory("mlp", "1f1b", 4, 1);
  const auto wanted = play(piece, 1);
  LittleRun run(piece);
  Scene scene(run, 1);
  Nodes there(scene.world(), 2, 1);
  scene.spec().player_host = &there;
  scene.begin();
  const auto steps_told = [&] {
    return std::ranges::count_if(
        run.events(), [](const Value& event) { return *event.find("type")->text() == "step"; });
  };
  while (steps_told() < 3) REQUIRE(scene.step());
  const auto none = std::make_shared<const std::vector<DeviceSpan>>();
  const auto& to = scene.supervisor();
  caf_shim::post(to, StepDone{1, 0, 0, 1, false, 1, 0});
  caf_shim::post(to, StepDone{1, 0, 1'000'000, 1, false, 1, 0});
  caf_shim::post(to, MicroBatchLoss{1, 0, 0, 1'000'000, 0, Round::Purpose::training, 1, {}, {}});
  caf_shim::post(to, MicroBatchLoss{1, 0, 0, 3, 0, Round::Purpose::evaluation, 1, {}, {}});
  caf_shim::post(to, Divergence{1, 0, 1'000'000, "w"});
  caf_shim::post(to, LateGradients{1, 0, 1'000'000, {}});
  caf_shim::post(to, RoundPlayed{1, 0, 0, 999'999'999, Round::Purpose::training, none, 0});
  caf_shim::post(to, RoundPlayed{1, 0, 0, 0, Round::Purpose::training, none, 0});
  caf_shim::post(to, Snapshot{1, 0, 3, {}, {}, {}});
  const auto played = scene.finish();
  CHECK(played.outcome.how == Outcome::How::done);
  CHECK(played.weights == wanted.weights);
  CHECK(played.audit.flaw.empty());
  CHECK(there.refused().size() == 9);
  CHECK(std::ranges::count(there.refused(),
                           "round_played: found a round from step 1000000000 "
                           "played, but no such round is under way") == 1);
  CHECK(there.forget() == 0);
}

TEST_CASE("a part of the state with tensors of another optimizer is refused", "[actors]") {
  auto piece = piece_in_memory("resnet", "1f1b", 2, 2);
  piece.save_every = 4;
  LittleRun run(piece);
  MemoryPool memory;
  {
    Scene scene(run, 1);
    scene.begin();
    REQUIRE(scene.finish().outcome.how == Outcome::How::done);
  }
  World world(1);
  const auto spec = run.spec([&]() -> Executor& { return world.make_executor(); });
  const auto start = newest_checkpoint(run.files(), memory);
  REQUIRE(start);
  const auto part = [&](int optimizer) {
    auto of = part_of(*start, *spec, optimizer);
    return Snapshot{1, optimizer, of.step, std::move(of.weights), std::move(of.moments), {}};
  };
  const TensorBounds bounds(*spec);
  for (int optimizer = 0; optimizer < optimizers_of(*spec); ++optimizer) {
    CAPTURE(optimizer);
    const auto good = part(optimizer);
    const auto checked = bounds.check(good);
    INFO((checked ? "" : checked.error().text));
    CHECK(checked.ok());
    if (good.weights.empty()) continue;
    const auto is_refused = [&](auto change) {
      auto changed = part(optimizer);
      change(changed);
      return !bounds.check(changed);
    };
    const Tensor large = Tensor::make(memory, {1'000'000});
    CHECK(is_refused([](Snapshot& of) { of.weights.pop_back(); }));
    CHECK(is_refused([](Snapshot& of) { of.weights.push_back(of.weights[0]); }));
    CHECK(is_refused([](Snapshot& of) { of.weights[0].name = "nobody's"; }));
    CHECK(is_refused([&](Snapshot& of) { of.weights[0].tensor = large; }));
    CHECK(is_refused([](Snapshot& of) { of.weights[0].tensor = Tensor(); }));
    CHECK(is_refused([&](Snapshot& of) { of.moments.push_back({"nobody's.m", large}); }));
    CHECK(is_refused([](Snapshot& of) { of.moments.push_back(of.moments[0]); }));
    CHECK(is_refused([](Snapshot& of) { of.moments.pop_back(); }));
  }
}
