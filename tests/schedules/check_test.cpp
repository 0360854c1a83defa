#include "schedules/check/check.h"

#include "catch.h"
#include "schedules/generators/registry.h"
#include "schedules/operators.h"
#include "schedules/text.h"
#include "transport/allocations.h"

using namespace troupe;
using namespace troupe::schedules;

namespace {

/// Builds a schedule of two stages on two devices with these lanes.
Schedule two_stages(int micro_batches, std::string_view first, std::string_view second) {
  Schedule schedule{.name = "test",
                    .stages = 2,
                    .micro_batches = micro_batches,
                    .routes = {{0, 1}},
                    .route_of = {0},
                    .lanes = {}};
  for (const auto lane : {first, second}) {
    auto read = parse_lane(lane);
    REQUIRE(read.ok());
    schedule.lanes.push_back(*std::move(read));
  }
  return schedule;
}

/// Returns all violations as text.
std::string wrong(const Schedule& schedule, const CheckRequest& request = {}) {
  std::string text;
  for (const Violation& violation : check(schedule, request)) text += render(schedule, violation);
  return text;
}

}  // namespace

TEST_CASE("check reports an action on a device outside its route", "[schedules]") {
  CHECK(wrong(two_stages(1, "0F0 1B0 0B0", "1F0")) ==
        "V1 placement: 1B0 is listed on device 0, but its route has stage 1 on device 1\n"
        "  d0: 0F0 1B0 0B0\n"
        "          ^~~\n");
}

TEST_CASE("check reports numbers out of range and broken routes", "[schedules]") {
  CHECK(wrong(two_stages(1, "0F0 0B0 0F1", "1F0 1B0")) ==
        "V1 placement: 0F1 is on micro-batch 1; the last is 0\n"
        "  d0: 0F0 0B0 0F1\n"
        "              ^~~\n");
  CHECK(wrong(two_stages(1, "0F0 2F0 0B0", "1F0 1B0")) ==
        "V1 placement: 2F0 is on stage 2; the last is 1\n"
        "  d0: 0F0 2F0 0B0\n"
        "          ^~~\n");
  Schedule schedule = two_stages(1, "0F0 0B0", "1F0 1B0");
  schedule.routes[0][1] = 7;
  CHECK(wrong(schedule) == "V1 placement: route 0 leads to device 7; the last is 1\n");
  schedule.routes[0].pop_back();
  CHECK(wrong(schedule) == "V1 placement: route 0 has 1 stages, the schedule 2\n");
  schedule.routes.clear();
  CHECK(wrong(schedule) == "V1 placement: there is no route from stage to stage\n");
  schedule = two_stages(1, "0F0 0B0", "1F0 1B0");
  schedule.route_of = {1};
  CHECK(wrong(schedule) == "V1 placement: a micro-batch takes route 1; the last is 0\n");
  schedule = two_stages(1, "0F0 0B0", "1F0 1B0");
  schedule.lanes[0][1].flags = Action::with_next;
  CHECK(wrong(schedule).starts_with(
      "V1 placement: 0B0 overlaps with the next action, but there is no pass next\n"));
}

TEST_CASE("check reports a pass that is missing or listed twice", "[schedules]") {
  const std::string wanted = "; wanted 1 F, and 1 B or 1 I and 1 W, and 1 R if F is checkpointed\n";
  CHECK(wrong(two_stages(1, "0F0 0B0", "1F0 1B0 1F0")) ==
        "V2 completeness: stage 1, micro-batch 0 has 2 F, 1 B" + wanted +
            "  d1: 1F0 1B0 1F0\n"
            "              ^~~\n");
  CHECK(wrong(two_stages(1, "0F0 0I0", "1F0 1B0"))
            .starts_with("V2 completeness: stage 0, micro-batch 0 has 1 F, 1 I" + wanted));
  CHECK(wrong(two_stages(1, "0F0 0B0", "1F0 1B0 1W0"))
            .starts_with("V2 completeness: stage 1, micro-batch 0 has 1 F, 1 B, 1 W" + wanted));
  CHECK(wrong(two_stages(1, "0F0' 0B0", "1F0 1B0"))
            .starts_with("V2 completeness: stage 0, micro-batch 0 has 1 F, 1 B, checkpointed" +
                         wanted));
  CHECK(wrong(two_stages(2, "0F0 0F1 0B0 0B1", "1F0 1B0")) ==
        "V2 completeness: stage 1, micro-batch 1 has nothing" + wanted +
            "  d1: 1F0 1B0\n"
            "              ^\n");
  CHECK(wrong(two_stages(1 << 22, "0F0 0B0", "1F0 1B0")) ==
        "V2 completeness: 2 stages and 4194304 micro-batches need at least 16777216 passes, the "
        "lanes "
        "hold 4 actions\n");
}

TEST_CASE("check reports a pass that precedes its input on its own device", "[schedules]") {
  CHECK(wrong(two_stages(1, "0B0 0F0", "1F0 1B0")) ==
        "V3 local order: device 0 has 0B0 before 0F0, which it needs\n"
        "  d0: 0B0 0F0\n"
        "      ^~~\n");
  CHECK(wrong(two_stages(1, "0F0 0W0 0I0", "1F0 1B0"))
            .starts_with("V3 local order: device 0 has 0W0 before 0I0, which it needs\n"));
  CHECK(wrong(two_stages(1, "0F0' 0B0 0R0", "1F0 1B0"))
            .starts_with("V3 local order: device 0 has 0B0 before 0R0, which it needs\n"));
  CHECK(wrong(two_stages(1, "0R0 0F0' 0B0", "1F0 1B0"))
            .starts_with("V3 local order: device 0 has 0R0 before 0F0', which it needs\n"));
}

TEST_CASE("check reports weight gradients out of their summation order", "[schedules]") {
  CHECK(wrong(two_stages(2, "0F0 0F1 0B0 0B1", "1F0 1F1 1I0 1I1 1W1 1W0")) ==
        "V3 local order: device 1 has 1W0 after 1W1; weight gradients are summed by micro-batch\n"
        "  d1: 1F0 1F1 1I0 1I1 1W1 1W0\n"
        "                          ^~~\n");
}

TEST_CASE("check reports a deadlock as its shortest cycle", "[schedules]") {
  CHECK(wrong(two_stages(2, "0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1")) ==
        "V4 acyclic: device 0 waits forever: 0B0 on device 0 needs 1B0 on device 1, which comes "
        "after 1F1, which needs 0F1 on device 0, which comes after 0B0\n"
        "  d0: 0F0 0B0 0F1 0B1\n"
        "          ^~~\n");
}

TEST_CASE("check reports a deadlock between the passes of one group", "[schedules]") {
  CHECK(wrong(two_stages(1, "0F0 0B0", "(1F0+1B0)")) ==
        "V4 acyclic: device 1 waits forever: 1B0 on device 1 needs 1F0 on device 1, which overlaps "
        "with 1B0\n"
        "  d1: (1F0+1B0)\n"
        "           ^~~\n");
  CHECK(
      wrong(two_stages(2, "0F0 (0F1+0B0) 0B1", "1F0 1F1 1B0 1B1"))
          .starts_with("V4 acyclic: device 0 waits forever: 0B0 on device 0 needs 1B0 on device 1, "
                       "which comes after 1F1, which needs 0F1 on device 0, which overlaps with "
                       "0B0\n"));
}

TEST_CASE("check reports an A before the gradients are complete and an O before its A",
          "[schedules]") {
  const auto first = [](std::string_view lane) {
    const std::string text = wrong(two_stages(2, lane, "1F0 1B0 1F1 1B1 1A 1O"));
    return text.substr(0, text.find('\n'));
  };
  CHECK(first("0F0 0F1 0B0 0B1 0A 0O") == "");
  CHECK(first("0F0 0F1 0B0 0A 0B1 0O") ==
        "V5 step order: 0B1 comes after 0A, which gives the step's gradients away");
  CHECK(first("0F0 0F1 0B0 0B1 0O 0A") ==
        "V5 step order: 0O needs an A of its stage before it, and after its gradients");
  CHECK(first("0F0 0F1 0B0 0B1 0A") == "V5 step order: device 0 has no O for stage 0 after 0B1");
  CHECK(first("0A 0F0 0F1 0B0 0B1 0O") ==
        "V5 step order: 0A comes before any gradient of its stage");
  CHECK(first("0F0 0F1 0B0 0B1 0A 0O 0O") ==
        "V5 step order: 0O comes after 0O: a stage has either one of them, or one with a number "
        "after each so many passes");
  CHECK(wrong(two_stages(2, "0F0 0F1 0B0 0A0 0O0 0B1 0A1 0O1", "1F0 1B0 1A0 1O0 1F1 1B1 1A1 1O1"))
            .empty());
  CHECK(first("0F0 0F1 0B0 0A0 0B1 0A1 0O1") ==
        "V5 step order: 0A1 comes before the O that uses 0A0");
  CHECK(first("0F0 0F1 0B0 0A1 0O1 0B1") ==
        "V5 step order: 0A1 comes after 0B0; its number must be that pass's");
  CHECK(first("0F0 0F1 0B0 0A0 0O0 0B1") ==
        "V5 step order: device 0 has no O for stage 0 after 0B1");
}

TEST_CASE("check reports stages that update after different micro-batches", "[schedules]") {
  CHECK(wrong(two_stages(2, "0F0 0F1 0B0 0O0 0B1 0O1", "1F0 1B0 1F1 1B1 1O1")) ==
        "V5 step order: stage 1 has 1 O's, but not after the same micro-batches as stage 0 has its "
        "2\n"
        "  d1: 1F0 1B0 1F1 1B1 1O1\n"
        "                          ^\n");
}

TEST_CASE("check reports a pass that runs without gathered weights", "[schedules]") {
  const auto first = [](std::string_view lane) {
    const std::string text = wrong(two_stages(1, lane, "1F0 1B0"));
    return text.substr(0, text.find('\n'));
  };
  CHECK(first("0G 0F0 0U 0G 0B0 0U") == "");
  CHECK(first("0G 0F0 0U 0B0") ==
        "V5 step order: 0B0 needs whole weights: a G of its stage must come before, and no U");
  CHECK(first("0F0 0G 0B0") ==
        "V5 step order: 0F0 needs whole weights: a G of its stage must come before, and no U");
  CHECK(first("0G 0G 0F0 0B0") == "V5 step order: 0G gathers weights that are whole already");
  CHECK(first("0G 0F0 0B0 0U 0U") == "V5 step order: 0U releases weights that no G has gathered");
}

TEST_CASE("check reports memory above the cap and the passes that hold it", "[schedules]") {
  const Schedule schedule = two_stages(3, "0F0 0F1 0F2 0B0 0B1 0B2", "1F0 1F1 1I0 1F2 1W0 1B1 1B2");
  CheckRequest request;
  request.memory = MemoryBudget{{{10, 4, 1}, {10, 4, 1}}, {30, 24}};
  CHECK(wrong(schedule, request).empty());
  request.memory->caps = {29, 23};
  CHECK(wrong(schedule, request) ==
        "V6 memory: device 0 comes to 30 B at 0F2, 1 B more than its 29 B; it keeps 0F0 0F1 0F2\n"
        "  d0: 0F0 0F1 0F2 0B0 0B1 0B2\n"
        "              ^~~\n"
        "V6 memory: device 1 comes to 24 B at 1F2, 1 B more than its 23 B; it keeps 1F0 1F1 1F2\n"
        "  d1: 1F0 1F1 1I0 1F2 1W0 1B1 1B2\n"
        "                  ^~~\n");
  // Each checkpoint keeps 1 byte, and one stash at a time is recomputed.
  request.memory->caps = {13, 24};
  CHECK(wrong(with_recompute(schedule, {true, false}), request).empty());
  request.memory->caps = {12, 24};
  CHECK(
      wrong(with_recompute(schedule, {true, false}), request)
          .starts_with("V6 memory: device 0 comes to 13 B at 0R0, 1 B more than its 12 B; it keeps "
                       "0F0' 0F1' 0F2'\n"));
}

TEST_CASE("overlapping passes allocate before they free", "[schedules]") {
  const Schedule schedule = two_stages(2, "0F0 0F1 0B0 0B1", "1F0 (1B0+1F1) 1B1");
  CheckRequest request;
  request.memory = MemoryBudget{{{10, 0, 0}, {10, 0, 0}}, {20, 20}};
  CHECK(wrong(schedule, request).empty());
  request.memory->caps = {20, 19};
  CHECK(wrong(schedule, request) ==
        "V6 memory: device 1 comes to 20 B at 1F1, 1 B more than its 19 B; it keeps 1F0 1F1\n"
        "  d1: 1F0 (1B0+1F1) 1B1\n"
        "               ^~~\n");
}

TEST_CASE("check reports a queue with too few slots and the number it needs", "[schedules]") {
  const Schedule schedule = *generate("bfs", {16, 32, 2});
  CheckRequest request;
  request.buffers = Buffers{.landing = 1, .outgoing = 1};
  const std::string text = wrong(schedule, request);
  CHECK(text.starts_with("V7 bounded buffers: the activations from device "));
  CHECK(
      text.find(" get stuck with 1 landing and 1 outgoing slots; the fewest landing slots that do "
                "are 3\n") != std::string::npos);
  request.buffers = Buffers{.landing = 3, .outgoing = 1};
  CHECK(wrong(schedule, request).empty());
}

TEST_CASE("check reports a queue whose messages are used out of order", "[schedules]") {
  const Schedule schedule = two_stages(2, "0F0 0F1 0B0 0B1", "1F1 1F0 1B0 1B1");
  CHECK(wrong(schedule).empty());
  CHECK(fewest_landing_slots(schedule, 1) == 2);
  CheckRequest request;
  request.buffers = Buffers{.landing = 2, .outgoing = 2};
  CHECK(wrong(schedule, request) ==
        "V7 bounded buffers: the activations from device 0 for stage 1 on device 1 are not used in "
        "the "
        "order of their making: 1F1 is before 1F0, but 0F1 after 0F0\n"
        "  d1: 1F1 1F0 1B0 1B1\n"
        "      ^~~\n");
}

TEST_CASE("check reports two streams whose transfers wait for each other", "[schedules]") {
  const Schedule schedule = *generate("1f1b", {2, 2, 1});
  CheckRequest request;
  request.streams = Streams::per_peer;
  CHECK(wrong(schedule, request) ==
        "V8 streams: two streams wait for each other: in one the transfer from 1B0 on device 1 to "
        "0B0 "
        "on device 0 is behind the transfer from 0F1 on device 0 to 1F1 on device 1, in the other "
        "the "
        "transfer from 0F1 on device 0 to 1F1 on device 1 is behind the transfer from 1B0 on "
        "device 1 "
        "to 0B0 on device 0\n"
        "  d0: 0F0 0F1 0B0 0B1\n"
        "              ^~~\n");
  request.streams = Streams::per_peer_and_direction;
  CHECK(wrong(schedule, request).empty());
}

TEST_CASE("check reports more weight versions or staleness than declared", "[schedules]") {
  const Schedule schedule = *generate("pipedream", {3, 6, 1});
  CheckRequest request;
  request.versions = VersionLimits{VersionRule::stash, 2, 3};
  CHECK(wrong(schedule, request).empty());
  request.versions = VersionLimits{VersionRule::stash, 1, 2};
  CHECK(wrong(schedule, request) ==
        "V9 versions: stage 0 on device 0: the gradient of 0B2 is 2 versions late, declared are at "
        "most 1\n"
        "  d0: ... 0F1 0F2 0B0 0O0 0F3 0B1 0O1 0F4 0B2 0O2 0F5 0B3 0O3 0B4 0O4 0B5 0O5\n"
        "                                          ^~~\n"
        "V9 versions: stage 0 on device 0 keeps 3 versions of its weights, declared are at most 2\n"
        "  d0: 0F0 0F1 0F2 0B0 0O0 0F3 0B1 0O1 0F4 ...\n"
        "      ^~~\n");
}

TEST_CASE("check shows a long lane only around the violation", "[schedules]") {
  Schedule schedule = *generate("gpipe", {1, 20, 1});
  std::swap(schedule.lanes[0][30], schedule.lanes[0][31]);
  CHECK(wrong(schedule) ==
        "V3 local order: device 0 has 0B10 after 0B11; weight gradients are summed by micro-batch\n"
        "  d0: ... 0B3 0B4 0B5 0B6 0B7 0B8 0B9 0B11 0B10 0B12 0B13 0B14 0B15 0B16 0B17 0B18 0B19\n"
        "                                           ^~~~\n");
}

TEST_CASE("check accepts a large schedule", "[schedules]") {
  const Schedule schedule = with_updates(*generate("interleaved", {128, 512, 2}));
  CheckRequest request;
  request.buffers = Buffers{.landing = 4, .outgoing = 1};
  request.streams = Streams::per_queue;
  CHECK(check(schedule, request).empty());
}

TEST_CASE("the memory that check allocates grows linearly with the schedule", "[schedules]") {
  const auto allocated = [](PipelineShape shape) {
    const Schedule schedule = with_updates(*generate("interleaved", shape));
    CheckRequest request;
    request.buffers = Buffers{.landing = 4, .outgoing = 1};
    request.streams = Streams::per_queue;
    const Allocations allocations;
    const bool valid = check(schedule, request).empty();
    const auto bytes = allocations.bytes();
    REQUIRE(valid);
    return bytes;
  };
  const auto small = allocated({16, 64, 2});
  REQUIRE(small > 0);
  // Eight times as many actions. Vectors that grow may allocate twice what they need, and a table
  // of pairs of actions would take 64 times as much.
  CHECK(allocated({16, 512, 2}) < 20 * small);
  CHECK(allocated({128, 64, 2}) < 20 * small);
}

TEST_CASE("check reports at most max_violations violations", "[schedules]") {
  Schedule schedule = *generate("1f1b", {8, 1000, 1});
  for (Lane& lane : schedule.lanes) std::ranges::reverse(lane);
  CHECK(check(schedule).size() == max_violations);
}
