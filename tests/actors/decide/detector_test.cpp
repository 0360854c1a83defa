#include "actors/decide/detector.h"

#include <map>
#include <random>

#include "catch.h"

using namespace troupe::actors;
using namespace std::chrono_literals;

namespace {

using Is = Presence::Is;
const Time start{1h};

Pulses regular(Duration every, int count) {
  Pulses pulses(start);
  for (int i = 1; i <= count; ++i) pulses.heard(start + i * every);
  return pulses;
}

Evidence heard(const Pulses& pulses) { return {pulses, {}, {}, 0}; }

/// Returns the silence after which a node is declared dead.
Duration patience_with(const Pulses& pulses, const DetectorLimits& limits, int witnesses = 0) {
  Evidence evidence = heard(pulses);
  evidence.witnesses = witnesses;
  Duration silence{};
  while (judge(evidence, pulses.last() + silence, limits).is != Is::dead) silence += 1ms;
  return silence;
}

}  // namespace

TEST_CASE("phi grows with silence, and is 0 for a pause within the floor", "[actors]") {
  const DetectorLimits limits;
  const auto pulses = regular(100ms, 300);
  CHECK(pulses.count() == 200);
  CHECK(pulses.mean() == Approx(0.1));
  CHECK(phi(pulses, pulses.last() + 400ms, limits) == 0);
  // One standard deviation (at least 20 ms) beyond 400 ms: a tail of 0.1587.
  CHECK(phi(pulses, pulses.last() + 420ms, limits) == Approx(0.7995).epsilon(0.001));
  // Six standard deviations: 9.866e-10.
  CHECK(phi(pulses, pulses.last() + 520ms, limits) == Approx(9.0059).epsilon(0.001));
  double before = 0;
  for (auto silence = 410ms; silence < 100s; silence += 10ms) {
    const double now = phi(pulses, pulses.last() + silence, limits);
    REQUIRE(now > before);
    before = now;
  }
}

TEST_CASE("with more nodes each of them may be silent longer", "[actors]") {
  DetectorLimits limits;
  limits.nodes = 32;
  CHECK(deadly_phi(limits) == Approx(8.9).margin(0.05));
  limits.nodes = 1000;
  CHECK(deadly_phi(limits) == Approx(10.4).margin(0.05));
  limits.nodes = 10000;
  CHECK(deadly_phi(limits) == Approx(11.4).margin(0.05));
}

TEST_CASE("a silent node becomes suspect, then dead, and sooner if other nodes miss it too",
          "[actors]") {
  DetectorLimits limits;
  limits.nodes = 32;
  const auto pulses = regular(100ms, 300);
  CHECK(judge(heard(pulses), pulses.last() + 400ms, limits).is == Is::alive);
  CHECK(judge(heard(pulses), pulses.last() + 480ms, limits).is == Is::suspect);
  const auto alone = patience_with(pulses, limits);
  const auto missed = patience_with(pulses, limits, 2);
  CHECK(alone > 500ms);
  CHECK(alone < 800ms);
  CHECK(missed < alone);
  // A node with irregular heartbeats gets more time.
  Pulses unsteady(start);
  std::mt19937 random(1);
  Time now = start;
  for (int i = 0; i < 300; ++i) {
    now += std::chrono::milliseconds(std::uniform_int_distribution<int>(20, 400)(random));
    unsteady.heard(now);
  }
  CHECK(patience_with(unsteady, limits) > 2 * alone);
}

TEST_CASE("a node that was heard only a few times may be silent longer", "[actors]") {
  DetectorLimits limits;
  limits.nodes = 4;
  const auto patience = [&](int heartbeats) {
    return patience_with(regular(100ms, heartbeats), limits);
  };
  CHECK(patience(0) < 1100ms);
  CHECK(patience(0) > 900ms);
  for (int heartbeats = 0; heartbeats < 200; heartbeats += 20)
    CHECK(patience(heartbeats + 20) <= patience(heartbeats));
  CHECK(patience(200) < 530ms);
}

TEST_CASE("a node whose connection closed is dead only after the reconnect patience", "[actors]") {
  const DetectorLimits limits;
  const auto pulses = regular(100ms, 50);
  Evidence evidence = heard(pulses);
  evidence.closed = pulses.last();
  CHECK(judge(evidence, pulses.last() + 1ms, limits).is == Is::suspect);
  evidence.pulses.heard(pulses.last() + 900ms);
  CHECK(judge(evidence, pulses.last() + 999ms, limits).is == Is::suspect);
  CHECK(judge(evidence, pulses.last() + 1000ms, limits).is == Is::dead);
  evidence.closed.reset();
  CHECK(judge(evidence, pulses.last() + 1000ms, limits).is == Is::alive);
}

TEST_CASE("a node whose process has ended is dead at once", "[actors]") {
  const auto pulses = regular(100ms, 50);
  Evidence evidence = heard(pulses);
  evidence.exited = "signal 9";
  const auto found = judge(evidence, pulses.last(), {});
  CHECK(found.is == Is::dead);
  CHECK(found.reason == "its process ended: signal 9");
}

TEST_CASE("a pause of the head itself counts against no node", "[actors]") {
  const DetectorLimits limits;
  const auto pulses = regular(100ms, 50);
  const auto all_of = [&](int nodes) {
    std::map<std::string, Evidence> all;
    for (int n = 0; n < nodes; ++n) all.emplace("node" + std::to_string(n), heard(pulses));
    return all;
  };
  const auto dead_after = [&](auto& all, Time last_look, Time now) {
    int dead = 0;
    std::vector<Evidence*> nodes;
    for (auto& [name, evidence] : all) nodes.push_back(&evidence);
    for (const auto& presence : judge_all(nodes, last_look, 50ms, now, limits))
      dead += presence.is == Is::dead ? 1 : 0;
    return dead;
  };
  auto all = all_of(6);
  const Time then = pulses.last() + 50ms;
  CHECK(dead_after(all, then, then + 30s) == 0);
  // From here on their silence counts again.
  CHECK(dead_after(all, then + 30s, then + 30s + 50ms) == 0);
  CHECK(dead_after(all, then + 31s, then + 31s + 50ms) == 6);

  // The head was not paused: either all nodes are gone, or the network is.
  auto gone = all_of(6);
  CHECK(dead_after(gone, then + 30s - 50ms, then + 30s) == 6);

  // The head was paused, but only one of six nodes is silent.
  auto one = all_of(6);
  for (auto& [name, evidence] : one)
    if (name != "node3") evidence.pulses.heard(then + 29950ms);
  CHECK(dead_after(one, then, then + 30s) == 1);
}
