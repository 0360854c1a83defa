#include <algorithm>

#include "catch.h"
#include "schedules/simulate/simulate.h"
#include "tables.h"

using namespace troupe;
using namespace troupe::schedules;

namespace {

/// A pipeline, and the times of a device's share of one micro-batch.
struct Case {
  int devices;
  int micro_batches;
  double forward, input, weight;

  double backward() const { return input + weight; }
  double load() const { return micro_batches * (forward + backward()); }
};

Simulation play(const std::string& name, const Case& c) {
  const auto schedule = make(name, c.devices, c.micro_batches);
  return play(schedule, uniform_costs(c.devices, chunks_of(name),
                                      {.forward = c.forward,
                                       .backward = c.backward(),
                                       .backward_input = c.input,
                                       .backward_weight = c.weight}));
}

/// Calls `body` for 1 to 8 devices with 1 to 3P + 3 micro-batches each.
template <class Body>
void for_each_case(double forward, double input, double weight, Body body) {
  for (int devices = 1; devices <= 8; ++devices)
    for (int micro_batches = 1; micro_batches <= 3 * devices + 3; ++micro_batches) {
      INFO(devices << " devices, " << micro_batches << " micro-batches");
      body(Case{devices, micro_batches, forward, input, weight});
    }
}

}  // namespace

TEST_CASE("straight schedules have the idle time of their formulas", "[schedules]") {
  for_each_case(1, 1, 0.75, [](const Case& c) {
    const double turn = (c.devices - 1) * (c.forward + c.backward());
    CHECK(play("seq", c).makespan == Approx(c.load() + turn * c.micro_batches));
    for (const auto* name : {"gpipe", "1f1b", "1f1b-eager"})
      CHECK(play(name, c).makespan == Approx(c.load() + turn));
  });
}

TEST_CASE("chunks divide the idle time of a schedule", "[schedules]") {
  for_each_case(1, 1, 0.75, [](const Case& c) {
    const double turn = (c.devices - 1) * (c.forward + c.backward());
    if (c.micro_batches >= c.devices) {
      CHECK(play("bfs-v2", c).makespan == Approx(c.load() + turn / 2));
      CHECK(play("bfs-v4", c).makespan == Approx(c.load() + turn / 4));
    }
    if (c.micro_batches % c.devices == 0) {
      CHECK(play("interleaved-v2", c).makespan == Approx(c.load() + turn / 2));
      CHECK(play("interleaved-v4", c).makespan == Approx(c.load() + turn / 4));
    }
  });
  for_each_case(1, 0.5, 0.5, [](const Case& c) {
    if (c.micro_batches % c.devices != 0) return;
    const double turn = (c.devices - 1) * (c.forward + c.backward());
    CHECK(play("hanayo-w1", c).makespan == Approx(c.load() + turn / 2));
    CHECK(play("hanayo-w2", c).makespan == Approx(c.load() + turn / 4));
  });
}

TEST_CASE("split schedules have the periods of their formulas", "[schedules]") {
  for (const double weight : {0.5, 0.75, 1.0})
    for_each_case(1, 1, weight, [](const Case& c) {
      const double turns = c.devices - 1;
      if (c.micro_batches >= c.devices)
        CHECK(play("zb-h1", c).period ==
              Approx(c.load() + turns * (c.forward + c.input - c.weight)));
      if (c.micro_batches >= 2 * c.devices - 1)
        CHECK(play("zb-h2", c).period ==
              Approx(c.load() + turns * std::max(0.0, c.forward + c.input - 2 * c.weight)));
    });
  for_each_case(1, 1, 1, [](const Case& c) {
    if (c.micro_batches >= 2 * c.devices - 1) CHECK(play("zb-v", c).period == Approx(c.load()));
  });
}

TEST_CASE("bidirectional schedules have the idle time of their formulas", "[schedules]") {
  for_each_case(1, 1, 1, [](const Case& c) {
    const double fused = c.forward + c.backward();
    if (c.micro_batches < 2 * c.devices) return;
    CHECK(play("dualpipev", c).makespan ==
          Approx(c.load() + (c.devices - 1) * (c.forward + 2 * c.backward() - 3 * c.weight) / 2));
    if (c.devices % 2 == 0 && c.micro_batches % 2 == 0)
      CHECK(play("dualpipe", c).makespan ==
            Approx(c.load() + (c.devices / 2 - 1) * (fused + c.backward() - 3 * c.weight)));
  });
  for_each_case(1, 0.5, 0.5, [](const Case& c) {
    if (c.devices % 2 == 0 && c.micro_batches % c.devices == 0)
      CHECK(play("chimera", c).makespan == Approx(2 * c.micro_batches + c.devices - 2));
  });
  for_each_case(1, 1, 1, [](const Case& c) {
    if (c.devices % 2 == 0 && c.micro_batches == c.devices)
      CHECK(play("chimera", c).makespan ==
            Approx(c.micro_batches * c.forward + (2 * c.devices - 2) * c.backward()));
  });
}

TEST_CASE("schedules have the memory peaks of their formulas", "[schedules]") {
  for_each_case(1, 1, 1, [](const Case& c) {
    const int devices = c.devices, micro_batches = c.micro_batches;
    const auto peaks = [&](const std::string& name, auto&& wanted) {
      const auto simulation = play(name, c);
      for (int device = 0; device < devices; ++device) {
        INFO(name << ", device " << device);
        CHECK(simulation.devices[static_cast<std::size_t>(device)].peak == Approx(wanted(device)));
      }
    };
    peaks("seq", [](int) { return 1; });
    peaks("gpipe", [&](int) { return micro_batches; });
    peaks("1f1b", [&](int device) { return std::min(micro_batches, devices - device); });
    peaks("1f1b-eager",
          [&](int device) { return std::min(micro_batches, 2 * (devices - 1 - device) + 1); });
    if (micro_batches >= devices) peaks("zb-h1", [&](int) { return devices; });
    peaks("zb-h2", [&](int) { return std::min(micro_batches, 2 * devices - 1); });
    if (micro_batches >= 2 * devices) {
      peaks("zb-v", [&](int) { return devices; });
      peaks("dualpipev", [&](int) { return devices + 0.5; });
    }
  });
}
