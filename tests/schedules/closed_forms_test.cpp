// What is known of the named schedules on paper, against the simulator: F = I = W = 1 for a
// device's whole share.

#include <algorithm>

#include "catch.h"
#include "schedules/registry.h"
#include "schedules/simulate.h"

using namespace troupe::schedules;

namespace {

struct Played {
  Simulation simulation;
  double makespan, span, peak;
};

Played play(const char* name, int devices, int micro_batches, int chunks, double backward = 2) {
  CAPTURE(name, devices, micro_batches, chunks);
  const auto schedule = generate(name, {devices * chunks, micro_batches, chunks});
  REQUIRE(schedule.ok());
  // A schedule with two directions holds whole stages, twice.
  const int held = schedule->routes.size() > 1 ? 1 : chunks;
  const auto simulation = simulate(*schedule, uniform_costs(devices, held, {.backward = backward}));
  REQUIRE(simulation.ok());
  return {*simulation, simulation->makespan, simulation->largest_span(),
          simulation->largest_peak()};
}

constexpr int most_devices = 8;
int most(int devices) { return 3 * devices + 3; }

}  // namespace

TEST_CASE("one stage on a device takes what the formulas say", "[schedules]") {
  for (int p = 1; p <= most_devices; ++p) {
    for (int m = 1; m <= most(p); ++m) {
      CAPTURE(p, m);
      CHECK(play("seq", p, m, 1).makespan == Approx(3 * m * p));
      for (const char* name : {"gpipe", "1f1b", "1f1b-eager"})
        CHECK(play(name, p, m, 1).makespan == Approx(3 * (m + p - 1)));
      CHECK(play("gpipe", p, m, 1).peak == m);
      const auto lean = play("1f1b", p, m, 1), eager = play("1f1b-eager", p, m, 1);
      for (int r = 0; r < p; ++r) {
        const auto device = static_cast<std::size_t>(r);
        CHECK(lean.simulation.devices[device].peak == std::min(m, p - r));
        CHECK(eager.simulation.devices[device].peak == std::min(m, 2 * (p - 1 - r) + 1));
      }
      if (m >= p) {
        CHECK(play("zb-h1", p, m, 1).span == Approx(3 * m + p - 1));
        CHECK(play("zb-h1", p, m, 1).peak == p);
      }
      if (m >= 2 * p - 1) {
        CHECK(play("zb-h2", p, m, 1).span == Approx(3 * m));
        CHECK(play("zb-h2", p, m, 1).peak == 2 * p - 1);
      }
    }
  }
}

TEST_CASE("several stages on a device take what the formulas say", "[schedules]") {
  for (int p = 2; p <= most_devices; ++p) {
    for (int m = 1; m <= most(p); ++m) {
      for (int v = 2; v <= 4; ++v) {
        CAPTURE(p, m, v);
        const double filled = 3 * m + 3.0 * (p - 1) / v;
        if (m % p == 0) {
          const auto played = play("interleaved", p, m, v);
          CHECK(played.makespan == Approx(filled));
          const int ahead = std::min(v * m, (v - 1) * p + 2 * (p - 1));
          CHECK(played.simulation.devices[0].peak ==
                Approx(std::min(ahead + 1, v * m) / static_cast<double>(v)));
        }
        if (m >= p) {
          CHECK(play("bfs", p, m, v).makespan == Approx(filled));
          CHECK(play("bfs", p, m, v).peak == Approx(m));
        }
      }
      CAPTURE(p, m);
      if (m >= 2 * p - 1) {
        CHECK(play("zb-v", p, m, 2).span == Approx(3 * m));
        CHECK(play("zb-v", p, m, 2).peak == Approx(p));
        CHECK(play("v-half", p, m, 2).peak == Approx((p + 2) / 2));
        CHECK(play("v-min", p, m, 2).peak == Approx((p + 4) / 3));
      }
      if (m >= 2 * p) {
        CHECK(play("dualpipev", p, m, 2).makespan == Approx(3 * m + p - 1));
        CHECK(play("dualpipev", p, m, 2).peak == Approx(p + 0.5));
      }
    }
  }
}

TEST_CASE("two directions and waves take what the formulas say", "[schedules]") {
  for (int p = 2; p <= most_devices; ++p) {
    for (int m = 2; m <= most(p); ++m) {
      CAPTURE(p, m);
      if (p % 2 == 0 && m % 2 == 0 && m >= 2 * p) {
        CHECK(play("dualpipe", p, m, 1).makespan == Approx(3 * m + p - 2));
        CHECK(play("dualpipe", p, m, 1).peak == Approx(p + 1));
      }
      // These two are made for passes of equal length.
      if (p % 2 == 0 && m % p == 0)
        CHECK(play("chimera", p, m, 1, 1).makespan == Approx(2 * m + p - 2));
      if (m % p == 0)
        for (int waves = 1; waves <= 2; ++waves)
          CHECK(play("hanayo", p, m, 2 * waves, 1).makespan ==
                Approx(2 * m + 2.0 * (p - 1) / (2 * waves)));
    }
  }
}
