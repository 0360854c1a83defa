#include "schedules/simulate/cost_model.h"

#include <cmath>

#include "catch.h"

using namespace troupe;
using namespace troupe::schedules;

namespace {

DeviceProfile small_device() {
  DeviceProfile device;
  device.name = "cpu";
  device.rate = {.operations = 1e9, .bandwidth = 1e8};
  device.overhead = Seconds(0.001);
  device.link = {.latency = 2e-5, .bandwidth = 5e7};
  device.kernels = {{"linear_forward", {.operations = 4e9, .bandwidth = 1e8}}};
  return device;
}

std::vector<UnitCost> one_unit() {
  std::vector<UnitCost> units(1);
  units[0].name = "block 0";
  return units;
}

}  // namespace

TEST_CASE("a kernel costs its launches plus the larger of compute and memory time", "[schedules]") {
  const DeviceProfile device = small_device();
  CHECK(time_of({.operations = 2e9, .bytes = 1e8}, "norm", device).count() == Approx(2.001));
  CHECK(time_of({.operations = 2e9, .bytes = 3e8}, "norm", device).count() == Approx(3.001));
  CHECK(
      time_of({.operations = 8e9, .bytes = 1e8, .launches = 3}, "linear_forward", device).count() ==
      Approx(2.003));
}

TEST_CASE("a profile reads back equal from its JSON", "[schedules]") {
  const auto back = read_profile(to_json(small_device()));
  REQUIRE(back.ok());
  CHECK(to_json(*back) == to_json(small_device()));
  CHECK(back->link.bandwidth == 5e7);
  CHECK(back->kernels[0].name == "linear_forward");
  CHECK(back->kernels[0].rate.operations == 4e9);
  DeviceProfile shared_memory = small_device();
  shared_memory.link = {};
  CHECK(std::isinf(read_profile(to_json(shared_memory))->link.bandwidth));
}

TEST_CASE("an error in a profile names its line and column", "[schedules]") {
  const auto error = [](std::string_view json) { return read_profile(json).error().text; };
  CHECK(error("{").find("this is not JSON") != std::string::npos);
  CHECK(error("[]") == "1:1: a profile is a map");
  CHECK(error("{}") == "1:1: the key \"profile\" is missing");
  CHECK(error(R"({"profile": 2})") == "1:13: profile must be a number from 1 to 1");
  DeviceProfile broken = small_device();
  broken.kernels[0].rate.bandwidth = -1;
  CHECK(read_profile(to_json(broken))
            .error()
            .text.find("bytes_per_second must be a number from 1 to 1e+21") != std::string::npos);
}

TEST_CASE("an error names the unit whose cost is out of range", "[schedules]") {
  CHECK(check_units(one_unit()).ok());
  auto units = one_unit();
  units[0].forward = Seconds(-1);
  CHECK(check_units(units).error().text ==
        "unit \"block 0\": forward takes -1 seconds; want 0 to 1e+06");
  units = one_unit();
  units[0].backward_weight = Seconds(NAN);
  CHECK_FALSE(check_units(units).ok());
  units = one_unit();
  units[0].stash = -8;
  CHECK(check_units(units).error().text ==
        "unit \"block 0\": stash is -8; want 0 to 1125899906842624");
  units = one_unit();
  units[0].tied = {TiedParameters{.name = "table", .weight = Bytes{1} << 60}};
  CHECK_FALSE(check_units(units).ok());
}
