#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "catch.h"
#include "core/digest.h"
#include "tests/actors/little_run.h"
#include "tests/actors/wires.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

Piece frozen_piece(const std::string& model, const std::string& schedule, int stages, int chunks,
                   int replicas) {
  RoundShape shape;
  shape.schedule = schedule;
  shape.stages = stages;
  shape.chunks = chunks;
  shape.replicas = replicas;
  shape.micro_batches = shape.groups = 4;
  Piece piece = Piece::of(model, shape);
  if (model == "gpt2")  // The embedding is tied to the head.
    piece.optimizer.groups = {{.match = {"wte*", "wpe*", "h.0.*", "*.bias"}, .frozen = true},
                              {.match = {"ln*"}, .weight_decay = 0.0}};
  else if (model == "llama")
    piece.optimizer.groups = {{.match = {"*norm*", "model.embed*", "*layers.0.*"}, .frozen = true}};
  else
    piece.optimizer.groups = {{.match = {"*.weight"}, .frozen = true}};
  return piece;
}

std::vector<Piece> frozen_pieces() {
  std::vector<Piece> all = {
      frozen_piece("gpt2", "1f1b", 3, 1, 1),         frozen_piece("gpt2", "gpipe", 2, 1, 2),
      frozen_piece("llama", "interleaved", 4, 2, 1), frozen_piece("llama", "zb-h1", 3, 1, 1),
      frozen_piece("mlp", "chimera", 2, 1, 1),       frozen_piece("resnet", "1f1b", 2, 1, 2),
      frozen_piece("wide", "1f1b", 2, 1, 2),
  };
  all[1].exchange = Exchange::server;
  all.push_back(frozen_piece("gpt2", "1f1b", 3, 1, 1).in_fp16(7));
  all.push_back(frozen_piece("llama", "1f1b", 4, 1, 1));
  all.back().shape.recompute.assign(4, true);
  return all;
}

Played over_wires(const Piece& piece) {
  MemoryPool memory;
  LittleRun run(piece);
  Scene scene(run, 7);
  Wires wires(3, memory);
  scene.spec().player_host = &wires;
  scene.begin();
  return scene.finish();
}

Piece late_frozen(const std::string& model) {
  Piece piece = frozen_piece(model, "pipedream", 3, 1, 1);
  piece.shape.micro_batches = piece.shape.groups = 2;
  piece.shape.flush_steps = piece.save_every = 3;
  piece.steps = 6;
  piece.staleness.predict = models::StalenessOptions::Predict::msnag;
  piece.staleness.linearize_at = models::StalenessOptions::LinearizeAt::forward;
  piece.staleness.gap_penalty = models::StalenessOptions::GapPenalty::elementwise;
  return piece;
}

}  // namespace

TEST_CASE("runs with frozen parameters give the bits of a plain loop", "[actors]") {
  for (const auto& piece : frozen_pieces()) {
    CAPTURE(piece.model, piece.shape.schedule, piece.shape.stages, piece.shape.replicas);
    const auto played = play(piece, 3);
    INFO(played.outcome.why);
    REQUIRE(played.outcome.how == Outcome::How::done);
    CHECK(played.weights == LittleRun(piece).plainly());
    CHECK(played.bytes_left == 0);
    const auto wired = over_wires(piece);
    INFO(wired.outcome.why);
    CHECK(wired.weights == played.weights);
  }
}

TEST_CASE("late gradients of runs with frozen parameters are the same over the wire", "[actors]") {
  for (const std::string model : {"gpt2", "llama", "mlp"}) {
    const auto piece = late_frozen(model);
    CAPTURE(model);
    const auto played = play(piece, 3);
    INFO(played.outcome.why);
    REQUIRE(played.outcome.how == Outcome::How::done);
    const auto wired = over_wires(piece);
    INFO(wired.outcome.why);
    CHECK(wired.weights == played.weights);
  }
}

TEST_CASE("a run with frozen parameters goes on after a kill with the same bits", "[actors]") {
  auto pieces = frozen_pieces();
  pieces.push_back(late_frozen("gpt2"));
  int replaced = 0;
  for (auto& piece : pieces) {
    if (piece.steps < 4) piece.steps = 4;
    piece.save_every = piece.model == "gpt2" && piece.shape.flush_steps > 0 ? 3 : 2;
    const auto undisturbed = play(piece, 1);
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      CAPTURE(piece.model, piece.shape.schedule, seed);
      const auto played = play_and_kill(piece, seed, undisturbed.messages,
                                        {"stage actor", "optimizer actor", "loader"});
      INFO(played.outcome.why);
      REQUIRE(played.outcome.how == Outcome::How::done);
      CHECK(played.weights == undisturbed.weights);
      if (!played.told("warn").empty()) ++replaced;
    }
  }
  CHECK(replaced > 20);
}

TEST_CASE("frozen weights travel once", "[actors]") {
  const auto sent = [](bool frozen) {
    auto piece = frozen_piece("wide", "1f1b", 2, 1, 2);
    if (!frozen) piece.optimizer.groups.clear();
    piece.steps = 8;
    MemoryPool memory;
    LittleRun run(piece);
    Scene scene(run, 7);
    Wires wires(4, memory);
    scene.spec().player_host = &wires;
    scene.begin();
    REQUIRE(scene.finish().outcome.how == Outcome::How::done);
    std::size_t bytes = 0;
    for (const auto& [process, of_one] : wires.exchanged()) bytes += of_one;
    return bytes;
  };
  CHECK(sent(true) * 4 < sent(false));
}

namespace {

/// Plays a run, kills one of its players unless `seed` is 0, and returns the bits of the averages
/// in its newest checkpoint.
Digest averages_of(const Piece& piece, std::uint64_t seed = 0) {
  LittleRun run(piece);
  Scene scene(run, seed + 1);
  scene.begin();
  if (seed > 0) {
    scene.play(400 + 37 * seed);
    for (const auto& [name, actor] : scene.world().living())
      if (name == (seed % 2 == 0 ? "stage actor" : "optimizer actor")) {
        caf_shim::kill(actor);
        break;
      }
  }
  const auto played = scene.finish();
  INFO(played.outcome.why);
  REQUIRE(played.outcome.how == Outcome::How::done);
  MemoryPool memory;
  const auto newest = newest_checkpoint(run.files(), memory);
  REQUIRE(newest);
  REQUIRE(newest->step == piece.steps);
  std::map<std::string, Tensor> averages;
  for (const auto& [name, tensor] : newest->moments)
    if (name.ends_with(".ema")) averages.emplace(name, tensor);
  REQUIRE(!averages.empty());
  Digester digester;
  for (const auto& [name, tensor] : averages) digester.add(tensor.host_bytes());
  return digester.finish();
}

}  // namespace

TEST_CASE("averages of weights are the same on every plan and after kills", "[actors]") {
  const auto piece = [](const std::string& model, int stages, int replicas) {
    auto made = frozen_piece(model, "1f1b", stages, 1, replicas);
    made.optimizer.groups.clear();
    made.optimizer.ema = 0.9;
    made.steps = 6;
    made.save_every = 2;
    return made;
  };
  for (const std::string model : {"gpt2", "wide"}) {
    const auto wanted = averages_of(piece(model, 1, 1));
    CHECK(averages_of(piece(model, 2, 1)) == wanted);
    CHECK(averages_of(piece(model, 2, 2)) == wanted);
    for (std::uint64_t seed = 1; seed <= 6; ++seed)
      CHECK(averages_of(piece(model, 2, 2), seed) == wanted);
  }
}

TEST_CASE("averages of weights stay with the optimizer in asynchronous runs", "[actors]") {
  for (const std::string model : {"gpt2", "mlp"}) {
    auto piece = late_frozen(model);
    const auto without = play(piece, 3);
    piece.optimizer.ema = 0.9;
    const auto played = play(piece, 3), wired = over_wires(piece);
    INFO(wired.outcome.why);
    CHECK(played.weights == without.weights);
    CHECK(wired.weights == without.weights);
  }
}
