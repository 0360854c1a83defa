#include "schedules/check/versions.h"

#include "catch.h"
#include "schedules/generators/registry.h"
#include "schedules/operators.h"

using namespace troupe;
using namespace troupe::schedules;

namespace {

struct Steady {
  std::vector<int> copies;
  std::vector<int> staleness;  // The last micro-batch's staleness.

  friend bool operator==(const Steady&, const Steady&) = default;
};

Steady steady(const Schedule& schedule, VersionRule rule) {
  const auto traces = replay_versions(schedule, rule);
  REQUIRE(traces.ok());
  Steady found;
  for (const VersionTrace& trace : *traces) {
    found.copies.push_back(trace.copies);
    found.staleness.push_back(trace.staleness.back());
  }
  return found;
}

}  // namespace

TEST_CASE("pipedream keeps a version for each micro-batch in flight", "[schedules]") {
  CHECK(steady(*generate("pipedream", {4, 16, 1}), VersionRule::stash) ==
        Steady{{4, 3, 2, 1}, {3, 2, 1, 0}});
  CHECK(steady(*generate("pipedream", {8, 32, 1}), VersionRule::stash) ==
        Steady{{8, 7, 6, 5, 4, 3, 2, 1}, {7, 6, 5, 4, 3, 2, 1, 0}});
}

TEST_CASE("2bw keeps two versions and reads one version late after its first group",
          "[schedules]") {
  for (const int devices : {4, 8})
    for (const int every : {devices, 2 * devices}) {
      const Schedule schedule =
          with_update_every(*generate("1f1b", {devices, 4 * devices, 1}), every);
      CHECK(steady(schedule, VersionRule::lag) ==
            Steady{std::vector<int>(devices, 2), std::vector<int>(devices, 1)});
      const auto traces = replay_versions(schedule, VersionRule::lag);
      for (const VersionTrace& trace : *traces)
        for (int m = 0; m < 4 * devices; ++m) CHECK(trace.staleness[m] == (m < every ? 0 : 1));
    }
}

TEST_CASE("passes without weight stashing read the newest version", "[schedules]") {
  CHECK(steady(*generate("pipedream", {4, 16, 1}), VersionRule::newest) ==
        Steady{{1, 1, 1, 1}, {3, 2, 1, 0}});
}

TEST_CASE("a synchronous step has one version and no staleness", "[schedules]") {
  CHECK(steady(with_updates(*generate("1f1b", {3, 6, 1})), VersionRule::stash) ==
        Steady{{1, 1, 1}, {0, 0, 0}});
}

TEST_CASE("a forward pass cannot read a version that does not exist yet", "[schedules]") {
  // Stage 0 runs far ahead of its updates.
  const Schedule schedule = with_update_every(*generate("gpipe", {2, 6, 1}), 2);
  CHECK(replay_versions(schedule, VersionRule::lag).error().text ==
        "0F4 on device 0 reads version 1, but only version 0 is made; update less often");
}
