#include "actors/decide/spikes.h"

#include <limits>
#include <vector>

#include "catch.h"

using namespace troupe::actors;

namespace {

constexpr SpikeRule rule{.action = SpikeRule::Action::skip, .factor = 3, .window = 5, .most = 2};

}  // namespace

TEST_CASE("a loss far above the median of the steps before is a spike", "[actors]") {
  const std::vector<double> before{2.0, 1.0, 1.5, 9.0, 1.0};  // Their median is 1.5.
  CHECK(!spikes(4.5, before, rule));
  CHECK(spikes(4.6, before, rule) ==
        "the loss is 4.6, and the median of 5 steps before is 1.5 (train.spike_factor = 3)");
  // With fewer steps nobody knows what is usual.
  CHECK(!spikes(100, {before.data(), 4}, rule));
  CHECK(!spikes(100, std::vector<double>{0, 0, 0, 0, 0}, rule));
}

TEST_CASE("a gradient norm far above the median is a spike if the rule has a factor for it",
          "[actors]") {
  const std::vector<double> before{2.0, 1.0, 1.5, 9.0, 1.0};  // Their median is 1.5.
  SpikeRule of_norms = rule;
  CHECK(!norm_spikes(1e9, before, of_norms));
  of_norms.norm_factor = 4;
  CHECK(!norm_spikes(6, before, of_norms));
  CHECK(norm_spikes(6.1, before, of_norms) ==
        "the gradient norm is 6.1, and the median of 5 steps before is 1.5 "
        "(train.spike_norm_factor = 4)");
  CHECK(!norm_spikes(100, {before.data(), 4}, of_norms));
}

TEST_CASE("a loss that is not finite is a spike from the first step on", "[actors]") {
  for (const double loss :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    CHECK(spikes(loss, {}, rule) == "the loss is not a finite number");
}

TEST_CASE("only so many steps of a window are left out", "[actors]") {
  CHECK(!ends_at_spike(20, {}, rule));
  CHECK(!ends_at_spike(20, std::vector<std::int64_t>{3, 9, 19}, rule));
  const auto ends = ends_at_spike(20, std::vector<std::int64_t>{3, 15, 19}, rule);
  REQUIRE(ends);
  CHECK(ends->starts_with("2 of the 5 steps before were left out already (train.spike_most = 2)"));
  SpikeRule stop = rule;
  stop.action = SpikeRule::Action::stop;
  CHECK(ends_at_spike(20, {}, stop)->starts_with("train.on_spike = \"stop\""));
}
