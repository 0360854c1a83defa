#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/pace.h"
#include "catch.h"
#include "little_run.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

Piece six_steps() {
  RoundShape shape;
  shape.stages = 2;
  shape.micro_batches = shape.groups = 4;
  auto piece = Piece::of("mlp", shape);
  piece.steps = 6;
  piece.save_every = 4;
  return piece;
}

std::uint64_t messages_of_six_steps() {
  static const auto played = play(six_steps(), 1);
  return played.messages;
}

/// The answers to a boundary change that was sent at some moment, and the run's outcome.
struct Held {
  std::vector<Result<std::int64_t>> answers;
  Played played;
};
template <class Change>
Held hold_in(LittleRun& run, std::uint64_t seed, Change change) {
  Held held;
  Scene scene(run, seed);
  scene.begin();
  scene.play(scene.world().random()() % messages_of_six_steps());
  if (!scene.ended())
    caf_shim::post(scene.supervisor(),
                   BoundaryChange{change(scene.spec()), [&](Result<std::int64_t> answer) {
                                    held.answers.push_back(std::move(answer));
                                  }});
  held.played = scene.finish();
  return held;
}

using NewSpec = std::function<Result<RunSpecPtr>(std::int64_t)>;

}  // namespace

TEST_CASE("a run whose players are replaced between two steps has the same bits", "[actors]") {
  const auto wanted = LittleRun(six_steps()).plainly();
  int held = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    LittleRun run(six_steps());
    const auto [answers, played] = hold_in(run, seed, [](const RunSpec& spec) -> NewSpec {
      return [spec](std::int64_t) { return Result<RunSpecPtr>(std::make_shared<RunSpec>(spec)); };
    });
    CAPTURE(seed, played.outcome.why);
    REQUIRE(played.ended);
    REQUIRE(played.outcome.how == Outcome::How::done);
    REQUIRE(played.weights == wanted);
    REQUIRE(played.told("warn").empty());
    REQUIRE(answers.size() <= 1);
    if (answers.empty() || !answers[0]) continue;
    ++held;
    // No step is repeated.
    std::int64_t steps = 0;
    for (const auto& event : played.events) steps += *event.find("type")->text() == "step" ? 1 : 0;
    REQUIRE(steps == 6);
  }
  CHECK(held > 50);
}

TEST_CASE("a learning rate set between two steps gives the bits of a configured one", "[actors]") {
  std::optional<std::int64_t> from;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    LittleRun run(six_steps());
    from.reset();
    const auto [answers, played] = hold_in(run, seed, [&](const RunSpec& spec) -> NewSpec {
      return [spec, &from](std::int64_t step) -> Result<RunSpecPtr> {
        auto changed = std::make_shared<RunSpec>(spec);
        changed->optimizer.rate.changes = {{step, 1e-3}};
        from = step;
        return RunSpecPtr(changed);
      };
    });
    if (!from) continue;
    auto planned = six_steps();
    planned.optimizer.rate.changes = {{*from, 1e-3}};
    CAPTURE(seed, *from);
    REQUIRE(played.weights == LittleRun(planned).plainly());
  }
}

TEST_CASE("a save order is answered once the save is complete", "[actors]") {
  const auto wanted = LittleRun(six_steps()).plainly();
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    LittleRun run(six_steps());
    std::optional<std::int64_t> there;
    Scene scene(run, seed);
    scene.begin();
    scene.play(scene.world().random()() % messages_of_six_steps());
    std::optional<std::int64_t> answered;
    if (!scene.ended())
      caf_shim::post(scene.supervisor(), BoundaryChange{{}, [&](const Result<std::int64_t>& step) {
                                                          if (!step) return;
                                                          answered = *step;
                                                          MemoryPool memory;
                                                          const auto newest = newest_of(
                                                              *scene.spec().checkpoints, memory);
                                                          there = newest ? newest->step : 0;
                                                        }});
    const auto played = scene.finish();
    CAPTURE(seed);
    REQUIRE(played.weights == wanted);
    if (answered) REQUIRE(there == answered);
  }
}

TEST_CASE("a refused change leaves a run unchanged", "[actors]") {
  const auto wanted = LittleRun(six_steps()).plainly();
  const std::string refusal = "not like this";
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    LittleRun run(six_steps());
    const auto [answers, played] = hold_in(run, seed, [&](const RunSpec&) -> NewSpec {
      return [refusal](std::int64_t) { return Result<RunSpecPtr>(Error{refusal}); };
    });
    CAPTURE(seed, played.outcome.why);
    CHECK(played.outcome.how == Outcome::How::done);
    CHECK(played.weights == wanted);
    CHECK(played.told("warn").empty());
    CHECK(played.audit.steps == 6);
    if (answers.empty()) continue;  // The run had ended before.
    REQUIRE(answers.size() == 1);
    REQUIRE(!answers[0]);
    const auto& why = answers[0].error().text;
    CAPTURE(why);
    if (why == refusal)
      ++refused;
    else  // The change came too late.
      CHECK((why == "the run is ending" || why == "the run has ended"));
  }
  CHECK(refused > 20);
}

TEST_CASE("a slowed process computes slower by the given factor", "[actors]") {
  using Clock = Pace::Clock;
  constexpr auto work = std::chrono::milliseconds(5);
  Pace pace;
  pace.slow_down(5, std::chrono::minutes(1));
  Clock::time_point first_done, second_began;
  {
    ComputingThread executor(1, &pace);
    executor.post([&](Stream&) {
      const auto end = Clock::now() + work;
      while (Clock::now() < end) {
      }
      first_done = Clock::now();
    });
    executor.post([&](Stream&) { second_began = Clock::now(); });
  }
  CHECK(second_began - first_done >= 4 * work);
}
