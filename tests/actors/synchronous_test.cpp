#include <map>
#include <string>

#include "catch.h"
#include "little_run.h"
#include "schedules/registry.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

constexpr const char* kinds[] = {"mlp", "gpt2", "llama", "vit", "resnet"};

/// What the one-process run of a model gives; every plan must give the same.
Digest wanted(const std::string& model) {
  static std::map<std::string, Digest> known;
  const auto [entry, is_new] = known.try_emplace(model);
  if (is_new) {
    RoundShape shape;
    shape.micro_batches = shape.groups = 8;
    entry->second = LittleRun(Piece::of(model, shape)).plainly();
  }
  return entry->second;
}

void check_same(const std::string& model, const RoundShape& shape, std::uint64_t seed) {
  CAPTURE(model, shape.schedule, shape.stages, shape.chunks, shape.replicas, seed);
  const auto played = play(Piece::of(model, shape), seed);
  REQUIRE(played.ended);
  INFO(played.outcome.why);
  CHECK(played.outcome.how == Outcome::How::done);
  CHECK(played.weights == wanted(model));
  CHECK(played.bytes_left == 0);
}

RoundShape shape_of(const std::string& schedule, int stages, int chunks, int replicas) {
  RoundShape shape;
  shape.schedule = schedule;
  shape.stages = stages;
  shape.chunks = chunks;
  shape.replicas = replicas;
  shape.micro_batches = shape.groups = 8;
  return shape;
}

}  // namespace

TEST_CASE("one stage gives the bits of a plain loop", "[actors]") {
  for (const std::string model : kinds) check_same(model, shape_of("1f1b", 1, 1, 1), 1);
}

TEST_CASE("two stages give the bits of a plain loop", "[actors]") {
  for (const std::string model : kinds)
    for (const std::uint64_t seed : {1, 2, 3}) check_same(model, shape_of("1f1b", 2, 1, 1), seed);
}

TEST_CASE("every synchronous schedule gives the bits of a plain loop", "[actors]") {
  std::uint64_t seed = 0;
  for (const auto& schedule : schedules::named_schedules()) {
    if (schedule.mode != schedules::Mode::synchronous) continue;
    for (const int replicas : {1, 2})
      for (const int stages : {1, 2, 3, 4})
        for (const int chunks : {1, 2, 4}) {
          auto shape = shape_of(std::string(schedule.name), stages * chunks, chunks, replicas);
          if (shape.stages > 8 || !Rounds::make(shape)) continue;
          ++seed;
          check_same(kinds[seed % 5], shape, seed);
        }
  }
  CHECK(seed > 60);
}
