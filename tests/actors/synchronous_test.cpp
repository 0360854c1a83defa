#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "little_run.h"
#include "schedules/generators/registry.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

constexpr const char* kinds[] = {"mlp",  "gpt2",  "llama", "vit", "resnet",
                                 "unet", "braid", "pair",  "t5"};

/// Returns the result of a one-process run of a model, which every plan must match.
Digest wanted(const std::string& model, int micro_batches) {
  static std::map<std::pair<std::string, int>, Digest> known;
  const auto [entry, is_new] = known.try_emplace({model, micro_batches});
  if (is_new) {
    RoundShape shape;
    shape.micro_batches = shape.groups = micro_batches;
    entry->second = LittleRun(Piece::of(model, shape)).plainly();
  }
  return entry->second;
}

void check_same(const std::string& model, const RoundShape& shape, std::uint64_t seed) {
  const bool recompute = !shape.recompute.empty();
  CAPTURE(model, shape.schedule, shape.stages, shape.chunks, shape.replicas, recompute, seed);
  const auto played = play(Piece::of(model, shape), seed);
  REQUIRE(played.ended);
  INFO(played.outcome.why);
  CHECK(played.outcome.how == Outcome::How::done);
  CHECK(played.weights == wanted(model, shape.micro_batches));
  CHECK(played.bytes_left == 0);
}

/// Calls `visit` with every shape of each synchronous schedule: 1 to 4 devices, 1 to 4 chunks,
/// these numbers of replicas, with and without recomputation.
template <class Visit>
void for_each_shape(int micro_batches, const std::vector<int>& replicas, Visit visit) {
  for (const auto& schedule : schedules::named_schedules()) {
    if (schedule.mode != schedules::Mode::synchronous) continue;
    for (const int copies : replicas)
      for (const int devices : {1, 2, 3, 4})
        for (const int chunks : {1, 2, 4})
          for (const bool recompute : {false, true}) {
            RoundShape shape;
            shape.schedule = schedule.name;
            shape.stages = devices * chunks;
            shape.chunks = chunks;
            shape.replicas = copies;
            shape.micro_batches = shape.groups = micro_batches;
            if (recompute) shape.recompute.assign(static_cast<std::size_t>(shape.stages), true);
            if (shape.stages <= 8 && Rounds::make(shape)) visit(shape);
          }
  }
}

}  // namespace

TEST_CASE("one stage gives the bits of a plain loop", "[actors]") {
  RoundShape shape;
  shape.micro_batches = shape.groups = 8;
  for (const std::string model : kinds) check_same(model, shape, 1);
}

TEST_CASE("every synchronous schedule gives the bits of a plain loop", "[actors]") {
  std::uint64_t seed = 0;
  for_each_shape(8, {1, 2}, [&](const RoundShape& shape) {
    ++seed;
    check_same(kinds[seed % std::size(kinds)], shape, seed);
  });
  CHECK(seed > 200);
}

TEST_CASE("every schedule with every model gives the bits of a plain loop", "[.all]") {
  std::uint64_t seed = 0;
  for_each_shape(16, {1, 2, 4}, [&](const RoundShape& shape) {
    for (const std::string model : kinds) check_same(model, shape, ++seed);
  });
  CHECK(seed > 2000);
}
