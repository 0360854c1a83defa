#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "catch.h"
#include "little_run.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

constexpr std::uint64_t seed = 7;

/// Returns two stages of four units on two devices, and three steps of four micro-batches.
Piece two_stages() {
  RoundShape shape;
  shape.stages = 2;
  shape.micro_batches = shape.groups = 4;
  auto piece = Piece::of("mlp", shape);
  piece.save_every = 1;
  return piece;
}

Digest weights_of_two_stages() {
  static const Digest digest = LittleRun(two_stages()).plainly();
  return digest;
}

bool is_at(const models::Pass& pass, std::uint32_t step, std::uint32_t m) {
  return pass.key.step == step && pass.key.sample == m * 2;
}

void check_done(const Played& played) {
  INFO(played.outcome.why);
  CHECK(played.outcome.how == Outcome::How::done);
  CHECK(played.weights == weights_of_two_stages());
  CHECK(played.bytes_left == 0);
}

void check_failed(const Played& played, std::int64_t step, const std::string& why) {
  CHECK(played.ended);
  CHECK(played.outcome.how == Outcome::How::failed);
  CHECK(played.outcome.why == why);
  CHECK(played.outcome.step == step);
  CHECK(played.bytes_left == 0);
}

/// A store that never reports that a save is complete.
class SilentStore final : public CheckpointStore {
 public:
  void save(storage::CheckpointContent, std::function<void(Status)>) override {}
  Result<StartPoint> load(std::int64_t, MemoryPool&) override { return Error{"there is none"}; }
  std::vector<std::int64_t> steps() override { return {}; }
};

/// A store that reports a save as complete when the test says so.
class LateStore final : public CheckpointStore {
 public:
  void save(storage::CheckpointContent, std::function<void(Status)> done) override {
    waiting_.push_back(std::move(done));
  }
  Result<StartPoint> load(std::int64_t, MemoryPool&) override { return Error{"there is none"}; }
  std::vector<std::int64_t> steps() override { return {}; }
  void save_all() {
    for (const auto& done : std::exchange(waiting_, {})) done(Done{});
  }

 private:
  std::vector<std::function<void(Status)>> waiting_;
};

/// The supervisor's signs of life and their times.
class Signs {
 public:
  explicit Signs(Scene& scene) : scene_(scene), last_(scene.world().now()) {
    scene.spec().alive = [this](const std::string& doing) { heard(doing); };
  }
  /// Returns the longest time without a sign.
  caf_shim::Duration longest() const { return std::max(longest_, silence()); }
  caf_shim::Duration silence() const { return scene_.world().now() - last_; }
  const std::string& doing() const { return doing_; }
  int count() const { return count_; }

 private:
  void heard(const std::string& doing) {
    longest_ = std::max(longest_, silence());
    last_ = scene_.world().now();
    doing_ = doing;
    ++count_;
  }

  Scene& scene_;
  caf_shim::TimePoint last_;
  caf_shim::Duration longest_{};
  std::string doing_;
  int count_ = 0;
};

/// Returns the actor of this name that was seen first, or a later one.
caf::actor find(World& world, const std::string& name, std::size_t which) {
  for (auto& [its, actor] : world.living())
    if (its == name && which-- == 0) return actor;
  FAIL("no such actor");
  return {};
}

}  // namespace

TEST_CASE("a layer that throws once costs one repeated step", "[actors]") {
  auto piece = two_stages();
  bool thrown = false;
  piece.layer_fault = {.unit = 5,
                       .forward =
                           [&](const models::Pass& pass, Tensor&) {
                             if (!is_at(pass, 1, 2) || std::exchange(thrown, true)) return;
                             throw std::runtime_error("this layer is for tests");
                           },
                       .backward = {}};
  const auto played = play(piece, seed);
  check_done(played);
  CHECK(played.told("warn") ==
        "device 1: step 2, 1F2: this layer is for tests; recovering from the newest checkpoint: "
        "failure 1 of at most 3 within limits.strike_window\n");
}

TEST_CASE("a layer that always throws ends the run at the second failure", "[actors]") {
  auto piece = two_stages();
  piece.layer_fault = {
      .unit = 5, .forward = {}, .backward = [&](const models::Pass& pass, Tensor&) {
        if (is_at(pass, 1, 3)) throw std::runtime_error("this layer is for tests");
      }};
  check_failed(play(piece, seed), 1,
               "device 1: step 2, 1B3: this layer is for tests (given up: the same failure "
               "occurred twice at the same place)");
}

TEST_CASE("a loss that is not a number ends the run at once", "[actors]") {
  auto piece = two_stages();
  piece.layer_fault = {.unit = 7,
                       .forward =
                           [](const models::Pass& pass, Tensor& y) {
                             if (is_at(pass, 2, 1))
                               y.f32()[0] = std::numeric_limits<float>::quiet_NaN();
                           },
                       .backward = {}};
  check_failed(play(piece, seed), 2,
               "device 1: step 3, micro-batch 1: the loss is not a finite number");
}

TEST_CASE("a gradient that is not finite ends the run with the parameter's name", "[actors]") {
  auto piece = two_stages();
  piece.layer_fault = {
      .unit = 2, .forward = {}, .backward = [](const models::Pass& pass, Tensor& dx) {
        if (is_at(pass, 1, 3))
          std::fill_n(dx.f32(), dx.count(), std::numeric_limits<float>::infinity());
      }};
  const auto played = play(piece, seed);
  CHECK(played.outcome.how == Outcome::How::failed);
  CHECK(played.outcome.step == 1);
  CHECK(played.outcome.why.starts_with("optimizer of stage 0: step 2: the gradient of "));
  CHECK(played.outcome.why.ends_with(" is not finite"));
}

TEST_CASE("an error about data that ends early names the step and the micro-batch", "[actors]") {
  auto piece = two_stages();
  int reads = 0;
  piece.on_read = [&](std::int64_t) -> Status {
    if (++reads <= 12) return Done{};
    return Error{"samples.bin ends at byte 4000, but a sample begins at byte 4096"};
  };
  const auto played = play(piece, seed);
  CHECK(played.outcome.how == Outcome::How::failed);
  CAPTURE(played.outcome.why);
  CHECK(played.outcome.why.starts_with("loader of "));
  CHECK(played.outcome.why.find(": step 1, micro-batch ") != std::string::npos);
  CHECK(played.outcome.why.find("samples.bin ends at byte 4000") != std::string::npos);
  CHECK(played.bytes_left == 0);
}

TEST_CASE("a device detects loaders that read different data", "[actors]") {
  LittleRun run(two_stages());
  Scene scene(run, seed);
  scene.spec().batches = {scene.spec().batches.inputs, &run.other_batches()};
  scene.begin();
  const auto played = scene.finish();
  CHECK(played.outcome.how == Outcome::How::failed);
  CAPTURE(played.outcome.why);
  CHECK(played.outcome.why.starts_with(
      "device 1: step 1, 1F0: the input of micro-batch 0 is of the samples "));
  CHECK(played.outcome.why.find("; both loaders must read the same data") != std::string::npos);
}

TEST_CASE("lanes that wait for each other are reported, then the run fails", "[actors]") {
  using schedules::backward, schedules::forward;
  LittleRun run(two_stages());
  Scene scene(run, seed);
  scene.spec().round = [usual = scene.spec().round](std::int64_t first, std::int64_t left) {
    auto round = std::make_shared<Round>(*usual(first, left));
    round->schedule.lanes[0] = {
        forward(0, 0),  backward(0, 0), forward(0, 1),  backward(0, 1),     forward(0, 2),
        backward(0, 2), forward(0, 3),  backward(0, 3), schedules::give(0), schedules::update(0)};
    round->schedule.lanes[1] = {
        forward(1, 0), forward(1, 1),  backward(1, 0), backward(1, 1),     forward(1, 2),
        forward(1, 3), backward(1, 2), backward(1, 3), schedules::give(1), schedules::update(1)};
    return round;
  };
  scene.begin();
  const auto played = scene.finish();
  check_failed(played, 0,
               "device 0: step 1, 0B0 waits for the gradient of micro-batch 0 from stage 1, and no "
               "player has made progress for too long (given up: the same failure occurred twice "
               "at the same place)");
  const auto stalls = played.told("stage.stalled");
  CHECK(stalls.find("device 1: step 1, 1F1 waits for the input of micro-batch 1 from stage 0") !=
        std::string::npos);
  CHECK(stalls.find("loader of inputs: step 1, micro-batch 3 waits until device 0 has taken the "
                    "one before") != std::string::npos);
  CHECK(stalls.find("supervisor: step 1 waits for 3 of 4 losses") != std::string::npos);
}

TEST_CASE("making the first weights may exceed the patience, since each piece is progress",
          "[actors]") {
  LittleRun run(two_stages());
  Scene scene(run, seed);
  scene.spec().first_weights_at_once = 4;
  scene.begin();
  while (scene.world().living().size() < 7) scene.step();
  constexpr int waits = 5, patiences = 4;
  static_assert(waits * patiences > 2 * Allowed().usual && patiences < Allowed().usual);
  for (int i = 0; i < waits; ++i) {
    scene.world().freeze(*scene.spec().executors[1]);
    scene.world().run_until([&] { return scene.ended(); }, patiences * scene.spec().stall_patience);
    scene.world().thaw();
    scene.play(10);
  }
  const auto played = scene.finish();
  check_done(played);
  CHECK(played.told("warn").empty());
  CHECK(played.told("stage.stalled").find(" numbers are drawn or packed") != std::string::npos);
}

TEST_CASE("a supervisor that waits for a long evaluation is not stalled while devices compute",
          "[actors]") {
  auto piece = two_stages();
  piece.eval_every = 1;
  LittleRun run(piece);
  Scene scene(run, seed);
  scene.begin();
  // A few messages a patience: an evaluation takes several of them.
  while (!scene.ended()) {
    for (auto& executor : scene.spec().executors) scene.world().freeze(*executor);
    scene.world().run_until([&] { return scene.ended(); }, scene.spec().stall_patience);
    scene.world().thaw();
    scene.play(8);
  }
  const auto played = scene.finish();
  check_done(played);
  CAPTURE(played.told("stage.stalled"));
  CHECK(played.told("stage.stalled").find("supervisor: ") == std::string::npos);
}

TEST_CASE("a run drained while it makes its first weights saves a state to resume from",
          "[actors]") {
  int drained_early = 0;  // Before any forward pass, thus before the first weights were complete.
  for (std::uint64_t s = 1; s <= 40; ++s) {
    auto piece = two_stages();
    bool has_computed = false;
    piece.layer_fault = {.unit = 0,
                         .forward = [&](const models::Pass&, Tensor&) { has_computed = true; },
                         .backward = {}};
    LittleRun run(piece);
    Played played;
    bool is_early = false;
    {
      Scene scene(run, s);
      scene.spec().first_weights_at_once = 4;
      scene.begin();
      scene.play(5 * s);
      is_early = !has_computed;
      caf_shim::post(scene.supervisor(), Drain{});
      played = scene.finish();
    }
    CAPTURE(s, is_early, played.outcome.why);
    CHECK(played.outcome.how == Outcome::How::stopped);
    CHECK(played.bytes_left == 0);
    // The round that was given out is still played.
    if (is_early) CHECK(played.outcome.step == 1);
    drained_early += is_early ? 1 : 0;
    {
      MemoryPool memory;
      const auto newest = newest_checkpoint(run.files(), memory);
      REQUIRE(newest);
      CHECK(newest->step == played.outcome.step);
      CHECK(digest_of_weights(newest->weights) == played.weights);
    }
    Scene resumed(run, s);
    resumed.begin();
    check_done(resumed.finish());
  }
  CHECK(drained_early > 10);
}

TEST_CASE("a job that never ends is reported as computing", "[actors]") {
  LittleRun run(two_stages());
  Scene scene(run, seed);
  scene.begin();
  while (scene.world().living().size() < 7) scene.step();
  while (run.events().size() < 1) scene.step();
  scene.play(5);
  scene.world().freeze(*scene.spec().executors[1]);
  const auto played = scene.finish();
  CHECK(played.outcome.how == Outcome::How::failed);
  CHECK(played.outcome.why ==
        "optimizer of stage 1: it still computes the first weights, and no player has made "
        "progress for too long (given up: the same failure occurred twice at the same place)");
  CHECK(played.told("warn").find("device 1: it still computes step 2, 1") != std::string::npos);
}

TEST_CASE("a read that never ends is reported", "[actors]") {
  LittleRun run(two_stages());
  Scene scene(run, seed);
  scene.world().freeze(*scene.spec().reader);
  scene.begin();
  const auto played = scene.finish();
  CHECK(played.outcome.how == Outcome::How::failed);
  CHECK(played.outcome.why ==
        "loader of inputs: it still reads step 1, micro-batch 0, and no player has made progress "
        "for too long (given up: the same failure occurred twice at the same place)");
}

TEST_CASE("an optimizer that lacks another one's norms reports which one", "[actors]") {
  LittleRun run(two_stages());
  Scene scene(run, seed);
  scene.begin();
  // The folder appears with the first step's save.
  while (!*run.files().exists("checkpoints")) scene.step();
  scene.world().freeze(find(scene.world(), "optimizer actor", 1));
  const auto played = scene.finish();
  CHECK(played.outcome.how == Outcome::How::failed);
  CHECK(
      played.told("stage.stalled")
          .find("optimizer of stage 0: step 2 waits for the norms of the optimizer of stage 1\n") !=
      std::string::npos);
  CHECK(played.outcome.why.find("it no longer answers") != std::string::npos);
}

TEST_CASE("a player that hangs ends the run with the player's name", "[actors]") {
  for (std::uint64_t s = 1; s <= 60; ++s) {
    LittleRun run(two_stages());
    Scene scene(run, s);
    scene.begin();
    scene.play(40 + s * 3);
    auto living = scene.world().living();
    std::erase_if(
        living, [](const auto& one) { return one.name == "supervisor" || one.name == "recorder"; });
    if (living.empty()) continue;
    scene.world().freeze(living[s % living.size()].actor);
    living.clear();
    const auto played = scene.finish();
    CAPTURE(s, played.outcome.why);
    REQUIRE(played.ended);
    CHECK(played.outcome.how == Outcome::How::failed);
    CHECK(played.outcome.why.find(": it no longer answers; then it waits for ") !=
          std::string::npos);
  }
}

TEST_CASE("a recorder that hangs stalls the run and then ends it", "[actors]") {
  LittleRun run(two_stages());
  Scene scene(run, seed);
  scene.spec().most_unrecorded = 1;
  scene.begin();
  scene.play(1);
  scene.world().settle();
  CHECK(scene.ended());

  LittleRun other(two_stages());
  Scene stuck(other, seed);
  stuck.spec().most_unrecorded = 1;
  stuck.begin();
  while (other.events().empty()) stuck.step();
  stuck.world().freeze(find(stuck.world(), "recorder", 0));
  const auto played = stuck.finish();
  CHECK(played.outcome.how == Outcome::How::failed);
  CAPTURE(played.outcome.why);
  CHECK(
      played.outcome.why.starts_with("supervisor: it waits for the recorder to write down what it "
                                     "was told, and no player has made progress"));
}

TEST_CASE("a recorder that hangs at the end does not change the outcome", "[actors]") {
  LittleRun run(two_stages());
  Scene scene(run, seed);
  scene.begin();
  while (run.events().size() < 3) scene.step();
  scene.world().freeze(find(scene.world(), "recorder", 0));
  const auto played = scene.finish();
  CHECK(played.outcome.how == Outcome::How::done);
  CHECK(played.outcome.why == "it waits for the recorder to end, for too long");
  CHECK(played.weights == weights_of_two_stages());
}

TEST_CASE("a checkpoint that is never written ends the run", "[actors]") {
  SilentStore store;
  LittleRun run(two_stages());
  Scene scene(run, seed);
  scene.spec().checkpoints = &store;
  scene.begin();
  check_failed(scene.finish(), 0,
               "supervisor: it waits for step 2 to be saved, and no player has made progress for "
               "too long; then it waits for a checkpoint to be written, for too long");
}

TEST_CASE("a run waits for a slow checkpoint", "[actors]") {
  LateStore store;
  LittleRun run(two_stages());
  Scene scene(run, seed);
  scene.spec().checkpoints = &store;
  scene.begin();
  int waits = 0;
  for (; !scene.ended(); ++waits) {
    REQUIRE(waits < 10);
    scene.world().run_until([&] { return scene.ended(); }, std::chrono::seconds(50));
    store.save_all();
    scene.world().settle();
  }
  CHECK(waits >= 2);
  check_done(scene.finish());
}

TEST_CASE("a waiting supervisor gives a sign of life within each patience", "[actors]") {
  const auto patience = RunSpec().stall_patience;
  SilentStore store;
  for (std::uint64_t s = 1; s <= 40; ++s) {
    LittleRun run(two_stages());
    Scene scene(run, s);
    if (s % 4 == 0) scene.spec().checkpoints = &store;
    Signs signs(scene);
    scene.begin();
    scene.play(40 + s * 5);
    if (s % 4 == 1) scene.world().freeze(*scene.spec().executors[s % 2]);
    if (s % 4 == 2) scene.world().freeze(*scene.spec().reader);
    if (s % 4 == 3) {
      caf_shim::post(scene.supervisor(), Pause{});
      scene.world().run_until([&] { return scene.ended(); }, 20 * patience);
      caf_shim::post(scene.supervisor(), Resume{});
    }
    const auto played = scene.finish();
    CAPTURE(s, signs.doing(), played.outcome.why);
    REQUIRE(played.ended);
    CHECK(signs.longest() <= patience);
  }
}

TEST_CASE("a supervisor that hangs gives no sign of life", "[actors]") {
  for (std::uint64_t s = 1; s <= 40; ++s) {
    LittleRun run(two_stages());
    Scene scene(run, s);
    Signs signs(scene);
    scene.begin();
    scene.play(20 + s * 10);
    if (scene.ended()) continue;
    scene.world().freeze(scene.supervisor());
    const int count = signs.count();
    scene.world().run_until([&] { return scene.ended(); }, std::chrono::minutes(10));
    CAPTURE(s);
    CHECK_FALSE(scene.ended());
    CHECK(signs.count() == count);
    scene.world().thaw();
    REQUIRE(scene.finish().ended);
  }
}

TEST_CASE("training continues if a checkpoint cannot be written", "[actors]") {
  LittleRun good(two_stages());
  Scene undisturbed(good, seed);
  undisturbed.begin();
  undisturbed.finish();
  int went_on = 0, failed = 0;
  for (std::int64_t call = 0; call < good.files().calls(); ++call) {
    LittleRun run(two_stages());
    Scene scene(run, seed);
    run.files().set_faults({.crash_at = {}, .failing_call = call, .capacity = {}});
    scene.begin();
    const auto played = scene.finish();
    const auto warned = played.told("warn");
    CAPTURE(call, warned, played.outcome.why);
    REQUIRE(played.ended);
    if (played.outcome.how == Outcome::How::failed) {
      CHECK(played.outcome.why.starts_with("step 3 was not saved: "));
      CHECK(played.outcome.step == 2);
      ++failed;
      continue;
    }
    check_done(played);
    if (warned.empty()) continue;  // This call was no sync.
    CHECK((warned.find(" was not saved: ") != std::string::npos ||
           warned.find("the ledger is behind: ") != std::string::npos));
    ++went_on;
  }
  CHECK(went_on > 0);
  CHECK(failed > 0);
}

TEST_CASE("a run whose last state cannot be saved fails", "[actors]") {
  LittleRun run(two_stages());
  Scene scene(run, seed);
  run.files().set_faults({.crash_at = {}, .failing_call = {}, .capacity = 100});
  scene.begin();
  const auto played = scene.finish();
  CHECK(played.outcome.how == Outcome::How::failed);
  CHECK(played.outcome.step == 0);
  CAPTURE(played.outcome.why);
  CHECK(played.outcome.why.starts_with("step 3 was not saved: "));
}
