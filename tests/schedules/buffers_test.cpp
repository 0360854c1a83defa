#include "catch.h"
#include "player.h"
#include "schedules/check/check.h"
#include "schedules/generators/registry.h"
#include "shapes.h"

using namespace troupe;
using namespace troupe::schedules;

namespace {

/// Returns which of the five stream layouts deadlock, one letter each: "xx...".
std::string stuck(const Schedule& schedule) {
  std::string letters;
  for (const Streams streams :
       {Streams::per_device, Streams::per_peer, Streams::per_peer_and_direction,
        Streams::per_peer_direction_and_kind, Streams::per_queue}) {
    CheckRequest request;
    request.streams = streams;
    letters += check(schedule, request).empty() ? '.' : 'x';
  }
  return letters;
}

}  // namespace

TEST_CASE("eight devices need the streams and landing slots of an independent reference",
          "[schedules]") {
  struct Row {
    std::string_view name;
    std::string_view stuck;
    int landing_slots;
  };
  // Reference from an independent program: P = 8, M = 32, one outgoing slot.
  const Row rows[] = {
      {"gpipe", ".....", 1},     {"1f1b", "xx...", 1},      {"1f1b-eager", "xx...", 1},
      {"zb-h1", "xx...", 1},     {"zb-h2", "xx...", 1},     {"interleaved-v2", "xx...", 1},
      {"bfs-v2", "x....", 3},    {"zb-v", "xxx..", 1},      {"v-half", "xx...", 1},
      {"v-min", "xx...", 1},     {"dualpipev", "xxx..", 1}, {"interleaved-v4", "xx...", 1},
      {"hanayo-w2", "xx...", 1}, {"chimera", "xx...", 1},   {"dualpipe", "xxx..", 1},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    const int chunks = row.name.ends_with("v4") || row.name.ends_with("w2") ? 4
                       : find_schedule(row.name)->chunks == Chunks::one     ? 1
                                                                            : 2;
    const auto schedule = generate(row.name, {8 * chunks, 32, chunks});
    REQUIRE(schedule.ok());
    CHECK(stuck(*schedule) == row.stuck);
    CHECK(fewest_landing_slots(*schedule, 1) == row.landing_slots);
  }
}

TEST_CASE("no named schedule deadlocks if each queue has its own stream", "[schedules]") {
  for_each_small_schedule(5, [](const Schedule& schedule) {
    CheckRequest request;
    request.streams = Streams::per_queue;
    INFO(schedule.name);
    CHECK(check(schedule, request).empty());
  });
}

TEST_CASE("check finds a deadlock in bounded queues exactly when a token player stalls",
          "[schedules]") {
  int stuck = 0;
  for_each_small_schedule(4, [&](const Schedule& schedule) {
    for (const Buffers buffers : {Buffers{1, 1}, Buffers{2, 1}, Buffers{1, 2}}) {
      CheckRequest request;
      request.buffers = buffers;
      const bool valid = check(schedule, request).empty();
      INFO(schedule.name << " " << schedule.stages << " " << schedule.micro_batches);
      CHECK(plays_to_the_end(schedule, buffers, 1) == valid);
      stuck += valid ? 0 : 1;
    }
    const int fewest = fewest_landing_slots(schedule, 1);
    CHECK(plays_to_the_end(schedule, Buffers{fewest, 1}, 2));
    if (fewest > 1) CHECK_FALSE(plays_to_the_end(schedule, Buffers{fewest - 1, 1}, 3));
  });
  CHECK(stuck > 0);
}
