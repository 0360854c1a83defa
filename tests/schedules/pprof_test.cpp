#include "schedules/formats/pprof.h"

#include <limits>

#include "catch.h"
#include "pprof_reader.h"
#include "schedules/formats/proto_writer.h"
#include "schedules/formats/run_profile.h"

using namespace troupe;
using namespace troupe::schedules;
using troupe::testing::PprofReader;
using troupe::testing::ProtoFields;

namespace {

using Frames = std::vector<std::string>;

/// Two devices; on the second, an update overlaps a pass by a second.
Timeline two_devices() {
  Timeline timeline;
  timeline.name = "r";
  timeline.devices = 2;
  timeline.spans = {{0, Track::compute, forward(0, 0), 10.0, 11.0},
                    {0, Track::compute, forward(0, 1), 11.0, 12.5},
                    {0, Track::compute, backward(0, 0), 13.0, 16.0},
                    {1, Track::compute, forward(1, 0), 11.0, 13.0},
                    {1, Track::compute, update(1), 12.0, 14.0}};
  return timeline;
}

RunMemory some_memory() {
  return {.run = "r",
          .plan = "1f1b, 2 stages",
          .devices = 2,
          .holdings = {{0, 0, "block 0", Held::weights, 40},
                       {0, 0, "block 1", Held::weights, 2},
                       {0, 0, "block 1", Held::activations, 7},
                       {1, 1, "block 2", Held::weights, 100},
                       {1, 1, "", Held::buffers, 5}}};
}

}  // namespace

TEST_CASE("fields are encoded as Protocol Buffers", "[schedules]") {
  ProtoWriter writer;
  SECTION("the number of the format's own description") {
    writer.add(1, std::int64_t{150});
    CHECK(writer.bytes() == "\x08\x96\x01");
  }
  SECTION("the text of the format's own description") {
    writer.add(2, std::string_view("testing"));
    CHECK(writer.bytes() == "\x12\x07testing");
  }
  SECTION("the packed numbers of the format's own description") {
    writer.add_packed(6, {3, 270, 86942});
    CHECK(writer.bytes() == "\x32\x06\x03\x8e\x02\x9e\xa7\x05");
  }
  SECTION("a message within another one") {
    ProtoWriter inner;
    inner.add(1, std::int64_t{150});
    writer.add(3, inner);
    CHECK(writer.bytes() == "\x1a\x03\x08\x96\x01");
  }
  SECTION("a field with a number of two bytes") {
    writer.add(16, std::int64_t{1});
    CHECK(writer.bytes() == "\x80\x01\x01");
  }
  SECTION("an empty text is there all the same") {
    writer.add(6, std::string_view());
    CHECK(writer.bytes() == std::string("\x32\x00", 2));
  }
}

TEST_CASE("every number reads back equal", "[schedules]") {
  using Limits = std::numeric_limits<std::int64_t>;
  const std::vector<std::int64_t> numbers{0,       1,  127, 128,           16383,        16384,
                                          1 << 21, -1, -2,  Limits::max(), Limits::min()};
  ProtoWriter writer;
  for (const auto number : numbers) writer.add(1, number);
  writer.add_packed(2, numbers);
  ProtoFields fields(writer.bytes());
  CHECK(fields.numbers(1) == numbers);
  CHECK(fields.packed(2) == numbers);
}

TEST_CASE("a profile keeps its samples, labels and comments when encoded as pprof", "[schedules]") {
  StackProfile profile;
  profile.name = "run \"7\"";
  profile.measures = {{"memory", "bytes"}, {"time", "nanoseconds"}};
  profile.comments = {"first", "second", "first"};
  profile.duration = std::chrono::seconds(2);
  profile.samples = {{{"device 0", "stage 0", "weights"}, {12, 0}, {{"device", "device 0"}}},
                     {{"device 1", "device 1"}, {-1, 5'000'000'000}, {}}};
  const PprofReader read(to_pprof(profile));
  CHECK(read.file == "run \"7\"");
  CHECK(read.types == std::vector<std::pair<std::string, std::string>>{{"memory", "bytes"},
                                                                       {"time", "nanoseconds"}});
  CHECK(read.default_type == "memory");
  CHECK(read.comments == std::vector<std::string>{"first", "second", "first"});
  CHECK(read.duration == 2'000'000'000);
  REQUIRE(read.samples.size() == 2);
  CHECK(read.samples[0].stack == Frames{"weights", "stage 0", "device 0"});
  CHECK(read.samples[0].values == std::vector<std::int64_t>{12, 0});
  CHECK(read.samples[0].labels == std::map<std::string, std::string>{{"device", "device 0"}});
  CHECK(read.samples[1].stack == Frames{"device 1", "device 1"});
  CHECK(read.samples[1].values == std::vector<std::int64_t>{-1, 5'000'000'000});
}

TEST_CASE("an empty profile is valid", "[schedules]") {
  const PprofReader read(to_pprof({}));
  CHECK(read.samples.empty());
  CHECK(read.types.empty());
}

TEST_CASE("a run's memory profile is split by device, layer, stage and purpose", "[schedules]") {
  const PprofReader read(to_pprof(run_profile(some_memory(), {})));
  REQUIRE(read.types.size() == 3);
  REQUIRE(read.samples.size() == 5);
  CHECK(read.samples[2].stack == Frames{"activations", "block 1", "stage 0", "device 0"});
  CHECK(read.samples[2].values == std::vector<std::int64_t>{7, 0, 0});
  CHECK(read.samples[2].labels.at("layer") == "block 1");
  CHECK(read.samples[4].stack == Frames{"buffers", "the whole stage", "stage 1", "device 1"});
  CHECK(read.sum(0, {}) == 154);
  CHECK(read.sum(0, {"weights"}) == 142);
  CHECK(read.sum(0, {"device 0"}) == 49);
  CHECK(read.sum(1, {}) == 0);
  CHECK(read.duration == 0);
}

TEST_CASE("a run's time profile is split by device, stage, action and idle time", "[schedules]") {
  const PprofReader read(to_pprof(run_profile(some_memory(), two_devices())));
  CHECK(read.duration == 6'000'000'000);
  CHECK(read.sum(0, {}) == 154);
  CHECK(read.sum(1, {"device 0", "stage 0", "forward"}) == 2'500'000'000);
  CHECK(read.sum(2, {"device 0", "stage 0", "forward"}) == 2);
  CHECK(read.sum(1, {"device 0", "backward"}) == 3'000'000'000);
  CHECK(read.sum(1, {"device 0", "idle"}) == 500'000'000);
  CHECK(read.sum(1, {"device 0"}) == read.duration);
  CHECK(read.sum(1, {"device 1", "update"}) == 2'000'000'000);
  CHECK(read.sum(2, {"device 1", "update"}) == 1);
  // Idle before 11 s and after 14 s; overlapping spans count once.
  CHECK(read.sum(1, {"device 1", "idle"}) == 3'000'000'000);
  CHECK(read.sum(2, {"idle"}) == 0);
}

TEST_CASE("a timeline with extreme times makes a profile", "[schedules]") {
  Timeline timeline;
  timeline.devices = 1;
  timeline.spans = {{0, Track::compute, forward(0, 0), -1e300, 1e300},
                    {0, Track::compute, forward(0, 1), 5, 3}};
  const PprofReader read(to_pprof(run_profile(some_memory(), timeline)));
  CHECK(read.sum(2, {"forward"}) == 2);
  CHECK(read.sum(1, {"forward"}) == 1'000'000'000'000'000'000);
  timeline.spans.clear();
  CHECK(PprofReader(to_pprof(run_profile(some_memory(), timeline))).samples.size() == 5);
}
