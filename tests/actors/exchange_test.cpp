// However replicas exchange gradients: the same bits, the same files.

#include "actors/exchange.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/play/players.h"
#include "catch.h"
#include "little_run.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

using Kind = models::OptimizerConfig::Kind;

constexpr Exchange ways[] = {Exchange::all_to_all, Exchange::server};
constexpr int micro_batches = 8;

RoundShape shape_of(const std::string& schedule, int stages, int replicas) {
  RoundShape shape;
  shape.schedule = schedule;
  shape.stages = stages;
  shape.chunks = schedule == "interleaved" ? 2 : 1;
  shape.replicas = replicas;
  shape.micro_batches = shape.groups = micro_batches;
  return shape;
}

Piece piece_of(const std::string& model, Kind kind, const RoundShape& shape, Exchange exchange) {
  auto piece = Piece::of(model, shape);
  const double clip = piece.optimizer.clip_norm;
  piece.optimizer = models::OptimizerConfig::of(kind);
  piece.optimizer.rate.lr = 1e-2;
  piece.optimizer.clip_norm = clip;
  if (kind == Kind::sgd) piece.optimizer.momentum = 0.9;
  piece.exchange = exchange;
  return piece;
}

std::map<std::string, std::string> checkpoint_files(storage::MemoryFiles& files) {
  std::map<std::string, std::string> found;
  const auto checkpoints = files.list("checkpoints");
  REQUIRE(checkpoints.ok());
  for (const auto& checkpoint : *checkpoints) {
    const std::string directory = "checkpoints/" + checkpoint.name;
    const auto entries = files.list(directory);
    if (!entries) continue;
    for (const auto& entry : *entries) {
      const auto bytes = files.read(directory + "/" + entry.name);
      REQUIRE(bytes.ok());
      found[directory + "/" + entry.name] = bytes->text();
    }
  }
  return found;
}

}  // namespace

TEST_CASE("no way of exchanging gradients changes a bit", "[actors]") {
  struct Case {
    std::string model;
    Kind kind;
  };
  std::uint64_t seed = 0;
  // The wide one has a matrix of two blocks, which is cut; tied weights; running statistics.
  for (const auto& [model, kind] : std::vector<Case>{{"wide", Kind::adamw},
                                                     {"wide", Kind::sgd},
                                                     {"wide", Kind::muon},
                                                     {"gpt2", Kind::adamw},
                                                     {"gpt2", Kind::muon},
                                                     {"llama", Kind::nadamw},
                                                     {"resnet", Kind::sgd}}) {
    const auto wanted =
        LittleRun(piece_of(model, kind, shape_of("gpipe", 1, 1), Exchange::server)).plainly();
    for (const std::string schedule : {"gpipe", "zb-h1", "interleaved", "dualpipe"})
      for (const int stages : {1, 2, 4})
        for (const int replicas : {1, 2, 4}) {
          const auto shape = shape_of(schedule, stages, replicas);
          if ((model == "wide" && stages > 2) || !Rounds::make(shape)) continue;
          for (const auto exchange : ways) {
            const bool is_server = exchange == Exchange::server;
            if (is_server && replicas == 1 && schedule != "dualpipe") continue;  // It is the same.
            CAPTURE(model, static_cast<int>(kind), schedule, stages, replicas, is_server);
            const auto played = play(piece_of(model, kind, shape, exchange), ++seed);
            REQUIRE(played.ended);
            INFO(played.outcome.why);
            CHECK(played.outcome.how == Outcome::How::done);
            CHECK(played.weights == wanted);
            CHECK(played.bytes_left == 0);
          }
        }
  }
  CHECK(seed > 150);
}

TEST_CASE("a checkpoint does not know how gradients were exchanged", "[actors]") {
  const auto files_of = [](const RoundShape& shape, Exchange exchange) {
    auto piece = piece_of("wide", Kind::adamw, shape, exchange);
    piece.save_every = 1;
    LittleRun run(piece);
    Scene scene(run, 1);
    scene.begin();
    CHECK(scene.finish().outcome.how == Outcome::How::done);
    return checkpoint_files(run.files());
  };
  const auto wanted = files_of(shape_of("gpipe", 1, 1), Exchange::server);
  REQUIRE(wanted.size() > 3);
  CHECK(files_of(shape_of("gpipe", 1, 4), Exchange::all_to_all) == wanted);
  CHECK(files_of(shape_of("gpipe", 2, 2), Exchange::all_to_all) == wanted);
  CHECK(files_of(shape_of("gpipe", 2, 2), Exchange::server) == wanted);
}

TEST_CASE("what one exchange has saved another one goes on with", "[actors]") {
  const auto piece = [](int stages, int replicas, Exchange exchange, std::int64_t steps) {
    auto made = piece_of("wide", Kind::adamw, shape_of("gpipe", stages, replicas), exchange);
    made.steps = steps;
    made.save_every = 1;
    return made;
  };
  const auto wanted = LittleRun(piece(1, 1, Exchange::server, 5)).plainly();
  LittleRun first(piece(2, 4, Exchange::all_to_all, 3));
  Scene begun(first, 4);
  begun.begin();
  REQUIRE(begun.finish().outcome.how == Outcome::How::done);

  LittleRun second(piece(1, 2, Exchange::server, 4));
  Scene further(second, 5);
  further.spec().checkpoints = begun.spec().checkpoints;
  further.begin();
  REQUIRE(further.finish().outcome.how == Outcome::How::done);

  LittleRun third(piece(2, 2, Exchange::all_to_all, 5));
  Scene ended(third, 6);
  ended.spec().checkpoints = begun.spec().checkpoints;
  ended.begin();
  CHECK(ended.finish().weights == wanted);
}

TEST_CASE("an optimizer that is killed comes back with its section", "[actors]") {
  auto piece = piece_of("wide", Kind::adamw, shape_of("gpipe", 1, 4), Exchange::all_to_all);
  piece.save_every = 1;
  const auto wanted = LittleRun(piece).plainly();
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    const auto played = play_and_kill(piece, seed, 250, {"optimizer actor"});
    INFO(played.outcome.why);
    CHECK(played.outcome.how == Outcome::How::done);
    CHECK(played.weights == wanted);
    CHECK(played.bytes_left == 0);
  }
}

TEST_CASE("each replica holds the moments of its section alone", "[actors]") {
  // Bytes that each device holds after a step.
  const auto held = [](Kind kind, Exchange exchange) {
    auto piece = piece_of("wide", kind, shape_of("gpipe", 1, 2), exchange);
    piece.optimizer.momentum = 0;
    LittleRun run(piece);
    Scene scene(run, 3);
    std::vector<double> bytes;
    scene.spec().record = [&](const Value& event) {
      if (*event.find("type")->text() != "step") return;
      bytes.clear();
      for (auto* executor : scene.spec().executors)
        bytes.push_back(static_cast<double>(executor->memory().counters().bytes_in_use));
    };
    scene.begin();
    CHECK(scene.finish().outcome.how == Outcome::How::done);
    REQUIRE(bytes.size() == 2);
    return bytes;
  };
  // adamw has two moments, and sgd has none here. The second matrix is cut after a block. A pool's
  // blocks are somewhat larger than what is asked for.
  constexpr double both = 2 * sizeof(float), numbers = 92'703, first = 1'500 + 65'536;
  const auto check = [&](Exchange exchange, double with_first) {
    const auto adamw = held(Kind::adamw, exchange), sgd = held(Kind::sgd, exchange);
    CHECK(adamw[0] - sgd[0] == Approx(both * with_first).epsilon(0.1));
    CHECK(adamw[1] - sgd[1] == Approx(both * (numbers - with_first)).epsilon(0.1).margin(100));
  };
  check(Exchange::server, numbers);
  check(Exchange::all_to_all, first);
}

TEST_CASE("an optimizer of many says which one it is", "[actors]") {
  LittleRun run(piece_of("wide", Kind::adamw, shape_of("gpipe", 2, 2), Exchange::all_to_all));
  Scene scene(run, 1);
  const auto& spec = scene.spec();
  CHECK(optimizers_of(spec) == 4);
  for (int i = 0; i < 4; ++i) CHECK(optimizer_of(spec, place_of(spec, i)) == i);
  CHECK(title_of(spec, {PlayerId::Kind::optimizer, 3}) == "optimizer of section 1 of stage 1");
  CHECK(home_of(spec, 3).replica == 1);
  CHECK(home_of(spec, 3).device == 1);
}
