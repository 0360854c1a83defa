#include "core/units.h"

#include "catch.h"

using namespace troupe;
using namespace std::chrono_literals;

TEST_CASE("a duration is a number with a unit", "[core]") {
  CHECK(*parse_duration("250ms") == 250ms);
  CHECK(*parse_duration("1.5s") == 1500ms);
  CHECK(*parse_duration("5m") == 5min);
  CHECK(*parse_duration("24 h") == 24h);
  CHECK(*parse_duration("7d") == 168h);
  CHECK(*parse_duration("0s") == 0s);
}

TEST_CASE("an invalid duration is an error that shows a valid one", "[core]") {
  CHECK(parse_duration("5").error().text ==
        "found \"5\", which is no duration; write a number and its unit (ms, s, m, h, d): \"5m\"");
  for (const char* text : {"", "m", "-5m", "5  m", "5min", "1e3s", "nans", "infs", "5m ", " 5m",
                           "0x5m", "5,5m", "5m5s"})
    CHECK_FALSE(parse_duration(text).ok());
  CHECK(parse_duration("101000d").error().text ==
        "found \"101000d\"; at most 100 years can be waited");
  CHECK_FALSE(parse_duration(std::string(400, '9') + "d").ok());
}

TEST_CASE("a duration is written in the largest unit that divides it", "[core]") {
  CHECK(duration_text(300s) == "5m");
  CHECK(duration_text(90s) == "90s");
  CHECK(duration_text(24h) == "1d");
  CHECK(duration_text(1500us) == "1500us");
  CHECK(duration_text(0ns) == "0s");
}

TEST_CASE("sizes accept binary and decimal units", "[core]") {
  CHECK(*parse_bytes("64B") == 64);
  CHECK(*parse_bytes("512KiB") == 524288);
  CHECK(*parse_bytes("2GiB") == 2147483648);
  CHECK(*parse_bytes("1.5GB") == 1500000000);
  for (const char* text : {"2", "2G", "GiB", "-1GiB", "99999999TiB", "2gib"})
    CHECK_FALSE(parse_bytes(text).ok());
}

TEST_CASE("a size is written in the largest binary unit that divides it", "[core]") {
  CHECK(bytes_text(1610612736) == "1536MiB");
  CHECK(bytes_text(2147483648) == "2GiB");
  CHECK(bytes_text(1000) == "1000B");
  CHECK(bytes_text(0) == "0B");
}

TEST_CASE("an interval counts steps or time", "[core]") {
  CHECK(*parse_interval("100 steps") == Interval{.steps = 100});
  CHECK(*parse_interval("1 step") == Interval{.steps = 1});
  CHECK(*parse_interval("5m") == Interval{.time = 5min});
  CHECK(to_text(Interval{.steps = 100}) == "100 steps");
  CHECK(to_text(Interval{.time = 5min}) == "5m");
  CHECK(parse_interval("0 steps").error().text ==
        "found \"0 steps\"; write how many steps, 1 or more: \"100 steps\"");
  CHECK(parse_interval("100").error().text ==
        "found \"100\", wanted \"100 steps\", or a duration such as \"5m\"");
  CHECK(parse_interval("0s").error().text == "found \"0s\"; an interval must not be 0");
  CHECK_FALSE(parse_interval("-1 steps").ok());
  CHECK_FALSE(parse_interval("99999999999999999999 steps").ok());
}

TEST_CASE("a range has two bounds or one number for both", "[core]") {
  CHECK(*parse_range("1:8") == CountRange{1, 8});
  CHECK(*parse_range("4") == CountRange{4, 4});
  CHECK(to_text(CountRange{1, 8}) == "1:8");
  CHECK(parse_range("8:1").error().text ==
        "found \"8:1\", where the fewest are more than the most");
  for (const char* text : {"", ":", "1:", ":8", "1:2:3", "a:b", "1:9999999999", "-1:2"})
    CHECK_FALSE(parse_range(text).ok());
}

TEST_CASE("a quantity is a number followed by a unit", "[core]") {
  CHECK(parse_quantity("2.5 MiB", byte_units()) == 2621440.0);
  CHECK_FALSE(parse_quantity("2.5  MiB", byte_units()));
  CHECK_FALSE(parse_quantity("1e3MB", byte_units()));
  CHECK(parse_quantity("1e3MB", byte_units(), std::chars_format::general) == 1e9);
}

TEST_CASE("counted, gib_text and size_text format counts and sizes for people", "[core]") {
  CHECK(counted(1, "stage") == "1 stage");
  CHECK(counted(2, "stage") == "2 stages");
  CHECK(counted(2, "micro-batch", "es") == "2 micro-batches");
  CHECK(gib_text(1610612736, 1) == "1.5 GiB");
  CHECK(size_text(0) == "0 bytes");
  CHECK(size_text(1) == "1 byte");
  CHECK(size_text(1024) == "1 KiB");
  CHECK(size_text(9'999) == "9999 bytes");
  CHECK(size_text(64 << 20) == "64 MiB");
  CHECK(size_text((64 << 20) + 1) == "64.0 MiB (67108865 bytes)");
  CHECK(size_text(495512185278464) == "450.7 TiB (495512185278464 bytes)");
  CHECK(size_text(1ULL << 63) == "8388608 TiB");
}
