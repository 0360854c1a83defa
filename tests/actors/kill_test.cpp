#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "little_run.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

/// The actors of which a test kills one.
struct Victims {
  std::set<std::string> names;
  std::string reason;  // How the reason of a failed run begins. Empty: no run may fail.
};

const Victims players = {{"stage actor", "optimizer actor", "loader"}, ""};
const Victims recorder = {{"recorder"}, "recorder: it was killed after step "};
const Victims supervisor = {{"supervisor"}, "supervisor: it was killed"};

Piece piece_of(const std::string& model, const std::string& schedule, int stages, int chunks,
               int replicas) {
  RoundShape shape;
  shape.schedule = schedule;
  shape.stages = stages;
  shape.chunks = chunks;
  shape.replicas = replicas;
  shape.micro_batches = shape.groups = 4;
  return Piece::of(model, shape);
}

struct Undisturbed {
  Piece piece;
  Played played;
};

const std::vector<Undisturbed>& undisturbed_pieces() {
  static const std::vector<Undisturbed> all = [] {
    std::vector<Piece> made = {
        piece_of("mlp", "1f1b", 2, 1, 1),        piece_of("mlp", "gpipe", 2, 1, 2),
        piece_of("mlp", "interleaved", 4, 2, 1), piece_of("llama", "1f1b", 2, 1, 1),
        piece_of("mlp", "zb-h1", 3, 1, 1),       piece_of("mlp", "chimera", 2, 1, 1),
    };
    made.push_back(piece_of("gpt2", "1f1b", 2, 1, 2).in_fp16(7));
    auto late = piece_of("mlp", "pipedream", 2, 1, 1);
    late.shape.flush_steps = late.save_every = 2;
    late.steps = 4;
    made.push_back(late);
    auto mended = piece_of("gpt2", "pipedream", 3, 1, 1);
    mended.shape.micro_batches = mended.shape.groups = 2;
    mended.shape.flush_steps = mended.save_every = 3;
    mended.steps = 6;
    mended.staleness.predict = models::StalenessOptions::Predict::msnag;
    mended.staleness.linearize_at = models::StalenessOptions::LinearizeAt::forward;
    mended.staleness.gap_penalty = models::StalenessOptions::GapPenalty::elementwise;
    mended.staleness.synchronous_steps = 1;
    made.push_back(mended);
    made.push_back(piece_of("unet", "zb-h1", 3, 1, 1));
    made.push_back(piece_of("pair", "1f1b", 3, 1, 1));
    made.push_back(piece_of("t5", "1f1b", 4, 1, 2));
    made[0].save_every = 1;
    made[1].save_every = 2;
    made[1].eval_every = 1;
    made[2].save_every = 2;
    made[3].eval_every = 2;
    made[4].save_every = 1;
    made[4].eval_every = 1;
    made[6].save_every = 2;
    std::vector<Undisturbed> undisturbed;
    for (auto& piece : made) {
      auto played = play(piece, 1);
      CAPTURE(piece.shape.schedule, played.outcome.why);
      REQUIRE(played.outcome.how == Outcome::How::done);
      undisturbed.push_back({std::move(piece), std::move(played)});
    }
    return undisturbed;
  }();
  return all;
}

/// How a run ended in which an actor was killed.
enum class EndAfterKill : std::uint8_t {
  undisturbed,  // The kill came too late to matter: no player was replaced.
  recovered,    // All players were replaced once.
  failed,
};

/// Plays a run and kills one actor. Requires an end without leaks, with either the bits of an
/// undisturbed run or the expected reason.
EndAfterKill end_after_kill(std::uint64_t seed, const Victims& victims) {
  const auto& [piece, undisturbed] = undisturbed_pieces()[seed % undisturbed_pieces().size()];
  const auto played = play_and_kill(piece, seed, undisturbed.messages, victims.names);
  const auto warned = played.told("warn");
  CAPTURE(seed, piece.shape.schedule, warned, played.outcome.why);
  REQUIRE(played.ended);
  REQUIRE(played.bytes_left == 0);
  REQUIRE(played.told("stage.stalled").empty());
  REQUIRE(played.audit.flaw.empty());
  REQUIRE(played.audit.steps >= played.outcome.step);
  if (!warned.empty()) {
    // One cause makes one new attempt; nothing that is left of the first disturbs the second.
    REQUIRE(std::ranges::count(warned, '\n') == 1);
    REQUIRE(warned.find(": it was killed after step ") != std::string::npos);
  }
  if (played.outcome.how == Outcome::How::failed) {
    REQUIRE(!victims.reason.empty());
    REQUIRE(played.outcome.why.starts_with(victims.reason));
    return EndAfterKill::failed;
  }
  REQUIRE(played.outcome.how == Outcome::How::done);
  REQUIRE(played.weights == undisturbed.weights);
  REQUIRE(played.audit.steps == piece.steps);
  return warned.empty() ? EndAfterKill::undisturbed : EndAfterKill::recovered;
}

/// The ends of several runs.
struct EndsAfterKills {
  int undisturbed = 0;
  int recovered = 0;
  int failed = 0;
  std::string report;  // The counts and the time.
};

/// Plays seed after seed.
EndsAfterKills ends_after_kills(std::uint64_t first, std::uint64_t count, const Victims& victims) {
  const auto begin = std::chrono::steady_clock::now();
  EndsAfterKills ends;
  for (auto seed = first; seed < first + count; ++seed) {
    const auto end = end_after_kill(seed, victims);
    ++(end == EndAfterKill::undisturbed ? ends.undisturbed
       : end == EndAfterKill::recovered ? ends.recovered
                                        : ends.failed);
  }
  const auto time = std::chrono::steady_clock::now() - begin;
  ends.report = std::to_string(count) + " seeds in " +
                std::to_string(std::chrono::duration<double>(time).count()) +
                " s: " + std::to_string(ends.undisturbed) + " undisturbed, " +
                std::to_string(ends.recovered) + " recovered, " + std::to_string(ends.failed) +
                " failed";
  return ends;
}

/// Plays a run and kills the recorder when the first player has been dismissed. By then the
/// outcome is decided, but the recorder still runs.
Played play_and_kill_recorder_at_end(const Piece& piece, std::uint64_t seed) {
  LittleRun run(piece);
  Scene scene(run, seed);
  scene.begin();
  const auto count_living = [&](const Victims& of) {
    return std::ranges::count_if(scene.world().living(),
                                 [&](const auto& one) { return of.names.contains(one.name); });
  };
  std::ptrdiff_t most = 0;
  for (auto now = count_living(players); now >= most; now = count_living(players)) {
    most = now;
    REQUIRE(scene.step());
  }
  REQUIRE(count_living(recorder) == 1);
  for (const auto& [name, actor] : scene.world().living())
    if (recorder.names.contains(name)) caf_shim::kill(actor);
  return scene.finish();
}

}  // namespace

TEST_CASE("a killed player is replaced and no bit changes", "[actors]") {
  constexpr int kills = 800;
  const auto ends = ends_after_kills(1, kills, players);
  INFO(ends.report);
  CHECK(ends.failed == 0);
  // In the remaining runs the kill came before the first player or after the last step.
  CHECK(ends.recovered > kills * 3 / 4);
}

// Reproduces a bug: a loss that was computed while its attempt ended was counted for the next
// attempt, which then hung.
TEST_CASE("late messages of a dead attempt do not reach the next one", "[actors]") {
  end_after_kill(7, players);
}

TEST_CASE("a run whose recorder is killed fails with that reason, or ends with the right bits",
          "[actors]") {
  constexpr int kills = 100;
  const auto ends = ends_after_kills(1, kills, recorder);
  INFO(ends.report);
  CHECK(ends.recovered == 0);
  CHECK(ends.failed > kills / 2);
  for (const auto& [piece, undisturbed] : undisturbed_pieces()) {
    const auto played = play_and_kill_recorder_at_end(piece, 1);
    CAPTURE(piece.shape.schedule, played.outcome.why);
    CHECK(played.outcome.how == Outcome::How::done);
    CHECK(played.weights == undisturbed.weights);
    CHECK(played.audit.flaw.empty());
    CHECK(played.audit.steps == piece.steps);
    CHECK(played.bytes_left == 0);
  }
}

TEST_CASE("a run whose supervisor is killed still ends, with that reason", "[actors]") {
  constexpr int kills = 100;
  const auto ends = ends_after_kills(1, kills, supervisor);
  INFO(ends.report);
  CHECK(ends.recovered == 0);
  CHECK(ends.failed > kills / 2);
}

TEST_CASE("10,000 killed players are replaced", "[.all]") {
  const auto ends = ends_after_kills(1, 10'000, players);
  WARN(ends.report);
  CHECK(ends.failed == 0);
}
TEST_CASE("every run ends over 1,000 kills of the recorder", "[.all]") {
  WARN(ends_after_kills(1, 1'000, recorder).report);
}
TEST_CASE("every run ends over 1,000 kills of the supervisor", "[.all]") {
  WARN(ends_after_kills(1, 1'000, supervisor).report);
}
