#include <algorithm>
#include <set>
#include <string>

#include "actors/round.h"
#include "catch.h"
#include "little_run.h"
#include "models/train/shared_parameters.h"
#include "schedules/generators/registry.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

RoundShape shape_of(const std::string& schedule, int stages, int chunks, int replicas) {
  RoundShape shape;
  shape.schedule = schedule;
  shape.stages = stages;
  shape.chunks = chunks;
  shape.replicas = replicas;
  shape.micro_batches = shape.groups = 8;
  return shape;
}

/// Returns the mailbox bound of each device of a replica.
std::vector<std::size_t> bound_of(const Piece& piece, const RunSpec& spec) {
  const auto shared = models::shared_parameters(*spec.model, spec.stages);
  const std::vector<RoundPtr> rounds(3, spec.round(0, piece.steps));
  return most_parcels(rounds, spec.loader_credit, shared);
}

int forward_passes(const schedules::Lane& lane, int stage) {
  return static_cast<int>(std::ranges::count_if(lane, [&](schedules::Action action) {
    return action.kind == schedules::Kind::forward && action.stage == stage;
  }));
}

/// Returns for each device of a replica how many jobs can wait for it: the running pass and two
/// more, and for each of its stages the first weights, the beginning of a round, and two jobs of
/// its optimizer.
std::vector<std::size_t> jobs_of(const schedules::Schedule& schedule) {
  std::vector<std::size_t> jobs;
  for (const auto& lane : schedule.lanes) {
    jobs.push_back(3);
    for (int stage = 0; stage < schedule.stages; ++stage)
      if (forward_passes(lane, stage) > 0) jobs.back() += 4;
  }
  return jobs;
}

/// Returns the credits of both loaders of all replicas.
std::size_t reads_of(const schedules::Schedule& schedule, const RunSpec& spec) {
  int lines = 0;
  for (const auto& lane : schedule.lanes)
    for (const int stage : {0, schedule.stages - 1})
      if (forward_passes(lane, stage) > 0) ++lines;
  return static_cast<std::size_t>(lines) * static_cast<std::size_t>(spec.replicas()) *
         static_cast<std::size_t>(spec.loader_credit);
}

void check_bounds(const Piece& piece, std::uint64_t seeds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    LittleRun run(piece);
    Scene scene(run, seed);
    const auto& spec = scene.spec();
    const auto& schedule = spec.round(0, 1)->schedule;
    const auto parcels = bound_of(piece, spec);
    const auto jobs = jobs_of(schedule);
    const auto reads = reads_of(schedule, spec);
    scene.begin();
    const auto played = scene.finish();
    CAPTURE(seed, piece.model, piece.shape.schedule, piece.shape.stages, piece.shape.replicas);
    REQUIRE(played.outcome.how == Outcome::How::done);
    REQUIRE(played.bytes_left == 0);
    REQUIRE(played.most_reads <= reads);
    for (std::size_t device = 0; device < played.most_jobs.size(); ++device) {
      CAPTURE(device);
      REQUIRE(played.outcome.most_parcels[device] <= parcels[device % parcels.size()]);
      REQUIRE(played.most_jobs[device] <= jobs[device % jobs.size()]);
    }
  }
}

}  // namespace

TEST_CASE("a device's mailbox is bounded by its schedule", "[actors]") {
  const auto bounds = [](const std::string& schedule, int stages) {
    const auto rounds = Rounds::make(shape_of(schedule, stages, 1, 1));
    REQUIRE(rounds.ok());
    return most_parcels(std::vector<RoundPtr>(3, rounds->of_one_step()), 2, {});
  };
  // Two inputs and two targets can be under way.
  CHECK(bounds("1f1b", 1) == std::vector<std::size_t>{4});
  // The first device runs one micro-batch ahead: two inputs can wait for the last device, then two
  // gradients for the first.
  CHECK(bounds("1f1b", 2) == std::vector<std::size_t>{2 + 2, 2 + 2});
  // All eight forward passes come before the first backward pass.
  CHECK(bounds("gpipe", 2) == std::vector<std::size_t>{2 + 8, 2 + 8});
}

TEST_CASE("no device ever holds more messages than its schedule allows", "[actors]") {
  int checked = 0;
  for (const auto& schedule : schedules::named_schedules()) {
    for (const int chunks : {1, 2})
      for (const int stages : {2, 4}) {
        const auto shape = shape_of(std::string(schedule.name), stages, chunks, 1);
        if (stages < chunks || !Rounds::make(shape)) continue;
        check_bounds(Piece::of("mlp", shape), 5);
        ++checked;
      }
  }
  check_bounds(Piece::of("llama", shape_of("1f1b", 3, 1, 1)), 5);
  CHECK(checked > 15);
}

TEST_CASE("no device ever holds more messages than its schedule allows: many seeds", "[.all]") {
  for (const auto& schedule : schedules::named_schedules()) {
    for (const int replicas : {1, 2})
      for (const int chunks : {1, 2})
        for (const int stages : {1, 2, 3, 4}) {
          const auto shape = shape_of(std::string(schedule.name), stages, chunks, replicas);
          if (stages % chunks != 0 || !Rounds::make(shape)) continue;
          check_bounds(Piece::of("mlp", shape), 50);
        }
  }
}

TEST_CASE("a run with messages in order allocates no memory after its second step", "[actors]") {
  for (const std::string schedule : {"gpipe", "1f1b", "zb-h1", "seq"}) {
    auto piece = Piece::of("mlp", shape_of(schedule, 2, 1, 1));
    piece.steps = 8;
    LittleRun run(piece);
    Scene scene(run, 1);
    scene.world().play_in_order();
    scene.begin();
    const auto played = scene.finish();
    REQUIRE(played.allocations.size() == 8);
    CAPTURE(schedule, played.allocations);
    CHECK(played.allocations[7] == played.allocations[1]);
  }
}

// A pool grows to the largest amount that was ever in use. In a random order of messages the peak
// may come late: a loader that was always slow is fast once. So memory is constant only in the long
// run.
TEST_CASE("memory reaches the same bound with every random order of messages", "[actors]") {
  auto piece = Piece::of("mlp", shape_of("1f1b", 2, 1, 1));
  piece.steps = 60;
  std::set<std::uint64_t> reached;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const auto played = play(piece, seed);
    REQUIRE(played.allocations.size() == 60);
    CAPTURE(seed, played.allocations);
    CHECK(played.allocations[59] == played.allocations[39]);
    CHECK(played.allocations[59] <= played.allocations[1] + 4);
    reached.insert(played.allocations[59]);
  }
  CHECK(reached.size() == 1);
}
