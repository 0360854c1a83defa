#include "schedules/generators/generators.h"

#include "catch.h"
#include "golden.h"
#include "schedules/check/check.h"
#include "schedules/generators/registry.h"
#include "schedules/generators/retime.h"
#include "schedules/text.h"
#include "shapes.h"

using namespace troupe;
using namespace troupe::schedules;

namespace {

std::vector<double> peaks(const Schedule& schedule) {
  RetimeSettings settings;
  settings.stages.resize(schedule.stages);
  // In units of a whole device's stash. With routes in both directions, a stage is a whole device.
  for (auto& stage : settings.stages)
    stage.stash = schedule.routes.size() == 2 ? 1.0 : double(schedule.devices()) / schedule.stages;
  return peak_stash(schedule, settings);
}

Schedule made(std::string_view name, PipelineShape shape) {
  auto schedule = generate(name, shape);
  REQUIRE(schedule.ok());
  return *std::move(schedule);
}

}  // namespace

TEST_CASE("every golden schedule is generated exactly", "[schedules]") {
  const auto all = golden_schedules();
  REQUIRE(all.size() == 16);
  for (const Golden& golden : all) {
    const auto wanted = parse_schedule(golden.text);
    REQUIRE(wanted.ok());
    const Schedule schedule =
        made(wanted->name, {.stages = wanted->stages, .micro_batches = wanted->micro_batches});
    CHECK(to_text(schedule) == golden.text);
    CHECK(peaks(schedule) == golden.peaks);
  }
}

TEST_CASE("1f1b alternates once the pipeline is full", "[schedules]") {
  const Schedule schedule = made("1f1b", {.stages = 3, .micro_batches = 4});
  CHECK(to_string(schedule.lanes[0]) == "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3");
  CHECK(to_string(schedule.lanes[2]) == "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3");
}

TEST_CASE("a sequential schedule runs one micro-batch at a time", "[schedules]") {
  const Schedule schedule = made("seq", {.stages = 2, .micro_batches = 2});
  CHECK(to_string(schedule.lanes[0]) == "0F0 0B0 0F1 0B1");
  CHECK(to_string(schedule.lanes[1]) == "1F0 1B0 1F1 1B1");
}

TEST_CASE("every named schedule is valid for every shape it accepts", "[schedules]") {
  int count = 0;
  for_each_small_schedule(8, [&](const Schedule& schedule) {
    ++count;
    const auto violations = check(schedule);
    INFO(to_text(schedule));
    if (!violations.empty()) FAIL(render(schedule, violations.front()));
  });
  // 132 shapes for 8 schedules with one chunk, 3 with two, 2 with 2 to 4, 1 with 2 or 4; 120 dual.
  CHECK(count == 132 * (8 + 3 + 2 * 3 + 2) + 120);
}

TEST_CASE("memory peaks equal their formulas", "[schedules]") {
  for (int P = 2; P <= 8; ++P) {
    const int M = 4 * P;
    const auto largest = [&](std::string_view name, int chunks = 1) {
      return std::ranges::max(peaks(made(name, {P * chunks, M, chunks})));
    };
    CHECK(largest("gpipe") == M);
    CHECK(largest("1f1b") == P);
    CHECK(largest("1f1b-eager") == 2 * P - 1);
    CHECK(largest("interleaved", 2) == P + (P - 1) / 2.0);
    CHECK(largest("interleaved", 4) == P + (P - 1) / 4.0);
    CHECK(largest("zb-h1") == P);
    CHECK(largest("zb-h2") == 2 * P - 1);
    CHECK(largest("zb-v", 2) == P);
    CHECK(largest("v-half", 2) == (P + 2) / 2);
    CHECK(largest("v-min", 2) == (P + 4) / 3);
    CHECK(largest("dualpipev", 2) == P + 0.5);
    CHECK(largest("hanayo", 4) == P);
    if (P % 2 == 0) CHECK(largest("chimera") == P);
    if (P % 2 == 0) CHECK(largest("dualpipe") == P + 1);
  }
}

TEST_CASE("credits limit the micro-batches in flight to at least one", "[schedules]") {
  CHECK(capped_credits(4, 4) == std::vector{4, 3, 2, 1});
  CHECK(capped_credits(8, 4) == std::vector{4, 3, 2, 1, 1, 1, 1, 1});
  CHECK(capped_credits(3, 9) == std::vector{3, 2, 1});
  const Schedule schedule = with_credits("capped", 3, capped_credits(3, 2));
  CHECK(to_string(schedule.lanes[0]) == "0F0 0F1 0B0 0F2 0B1 0B2");
  CHECK(to_string(schedule.lanes[1]) == "1F0 1B0 1F1 1B1 1F2 1B2");
  CHECK(check(schedule).empty());
}

TEST_CASE("an error for an unsupported shape suggests a shape that works", "[schedules]") {
  const auto error = [](std::string_view name, PipelineShape shape) {
    const auto result = generate(name, shape);
    REQUIRE_FALSE(result.ok());
    return result.error().text;
  };
  CHECK(error("1f1p", {2, 2, 1}) == "there is no schedule '1f1p'; the nearest are 1f1b, bfs, seq");
  CHECK(error("1f1b", {0, 2, 1}) == "1f1b needs stages from 1 to 4096, found 0");
  CHECK(error("1f1b", {4097, 2, 1}) == "1f1b needs stages from 1 to 4096, found 4097");
  CHECK(error("1f1b", {2, 0, 1}) == "1f1b needs micro-batches from 1 to 4194304, found 0");
  CHECK(error("1f1b", {2, 2, -1}) == "1f1b needs chunks from 1 to 4096, found -1");
  CHECK(error("gpipe", {4096, 4096, 1}) ==
        "gpipe would have 16777216 forward passes for 4096 stages and 4096 micro-batches; at most "
        "3355443 fit");
  CHECK(error("1f1b", {4, 2, 2}) == "1f1b has one stage on each device, found chunks = 2; use 1");
  CHECK(error("interleaved", {4, 2, 1}) ==
        "interleaved needs several stages on each device, found chunks = 1; use 2 or more");
  CHECK(error("interleaved", {5, 2, 2}) ==
        "interleaved has 2 stages on each device, which does not divide 5 stages; use 4 or 6");
  CHECK(error("interleaved-v2", {6, 2, 3}) ==
        "interleaved-v2 has 2 chunks by its name, found chunks = 3; leave one of them out");
  CHECK(error("zb-v", {6, 2, 3}) == "zb-v has two stages on each device, found chunks = 3; use 2");
  CHECK(error("zb-v", {3, 2, 1}) ==
        "zb-v has 2 stages on each device, which does not divide 3 stages; use 2 or 4");
  CHECK(error("hanayo", {3, 2, 3}) ==
        "hanayo needs an even number of stages on each device, found chunks = 3; use 4");
  CHECK(error("chimera", {3, 4, 1}) ==
        "chimera needs an even number of devices, found 3; use 2 or 4");
  CHECK(error("chimera", {4, 1, 1}) ==
        "chimera needs an even number of micro-batches, found 1; use 2");
  CHECK(error("dualpipev", {4, 3, 2}) ==
        "dualpipev needs at least twice as many micro-batches as devices, found 3 for 2 devices; "
        "use 4 or more");
}

TEST_CASE("a schedule name can contain the number of chunks and has aliases", "[schedules]") {
  CHECK(made("interleaved-v3", {6, 4, 1}) == made("interleaved", {6, 4, 3}));
  CHECK(made("hanayo-w2", {8, 4, 1}) == made("hanayo", {8, 4, 4}));
  CHECK(made("2bw", {2, 4, 1}) == made("pipedream-2bw", {2, 4, 1}));
  CHECK(find_schedule("bfs-v2") == find_schedule("bfs"));
  CHECK(find_schedule("zb-v2") == nullptr);
  CHECK(find_schedule("interleaved-v0") == nullptr);
  CHECK(find_schedule("interleaved-v2x") == nullptr);
  CHECK(find_schedule("interleaved-") == nullptr);
}

TEST_CASE("the largest shapes can be generated", "[schedules]") {
  CHECK(made("zb-v", {4096, 1, 2}).devices() == 2048);
  CHECK(made("v-min", {4096, 2, 2}).devices() == 2048);
  CHECK(made("1f1b", {1, 1 << 20, 1}).lanes[0].size() == std::size_t{2} << 20);
}
