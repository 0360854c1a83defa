// A simulated pipeline whose devices and links become slow. Each device has a clock of its own.
// Times have log-normal noise and outliers. All numbers are drawn from a seed.

#include "actors/decide/stragglers.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "catch.h"

using namespace troupe;
using namespace troupe::actors;
using Cause = Straggler::Cause;
using Than = Straggler::Than;

namespace {

struct PipelineSize {
  int stages = 3;
  int replicas = 1;
  int micro_batches = 4;
};

/// Plays 1f1b on devices of which each has a clock and a node of its own. A forward pass takes 10
/// ms, a backward pass 20 ms, and a message 1 ms.
class NoisyPipeline {
 public:
  NoisyPipeline(const PipelineSize& size, unsigned seed) : size_(size), random_(seed) {
    const auto count =
        static_cast<std::size_t>(size.stages) * static_cast<std::size_t>(size.replicas);
    std::vector<std::string> nodes;
    std::uniform_real_distribution<double> clock(-1e5, 1e5), drift(-5e-5, 5e-5);
    for (std::size_t i = 0; i < count; ++i) {
      nodes.push_back("node-" + std::to_string(i));
      offsets_.push_back(clock(random_));
      drifts_.push_back(1 + drift(random_));
    }
    slower_.assign(count, 1);
    stragglers.attempt_begins(std::move(nodes), size.replicas);
  }

  void slow_down(std::size_t device, double times) { slower_[device] = times; }
  /// Makes passes and messages of all devices this many times faster.
  void speed_up(double times) { speed_ = times; }
  /// Makes tensors from one device to another late by `seconds`.
  void delay(std::size_t from, std::size_t to, double seconds) { delays_[{from, to}] = seconds; }
  /// Makes targets of the last stage late by `seconds`.
  void delay_targets(double seconds) { targets_late_ = seconds; }
  /// Moves a device's clock, as no steady clock should.
  void move_clock(std::size_t device, double seconds) { offsets_[device] += seconds; }

  /// Plays a step. Returns what has changed.
  std::vector<Straggler> step() {
    TimedRound round{.first_step = step_++,
                     .steps = 1,
                     .micro_batches_in_step = size_.micro_batches,
                     .took = {},
                     .devices = std::vector<std::vector<TimedAction>>(offsets_.size())};
    const double begin = now_;
    for (int replica = 0; replica < size_.replicas; ++replica) play(replica, begin, round);
    now_ += 0.002;
    round.took = std::chrono::nanoseconds(std::llround(1e9 * (now_ - begin)));
    auto changes = stragglers.add(round);
    said.insert(said.end(), changes.begin(), changes.end());
    return changes;
  }
  void steps(int count) {
    for (int i = 0; i < count; ++i) (void)step();
  }
  /// Plays until something changes, at most so many steps.
  std::optional<Straggler> change_within(int most) {
    for (int i = 0; i < most; ++i)
      if (auto changes = step(); !changes.empty()) return changes.front();
    return {};
  }

  std::int64_t done() const { return step_; }

  Stragglers stragglers;
  std::vector<Straggler> said;  // All changes.

 private:
  static schedules::Lane lane(int stage, const PipelineSize& size) {
    schedules::Lane lane;
    const int ahead = std::min(size.stages - 1 - stage, size.micro_batches);
    for (int m = 0; m < size.micro_batches + ahead; ++m) {
      if (m < size.micro_batches) lane.push_back(schedules::forward(stage, m));
      if (m >= ahead) lane.push_back(schedules::backward(stage, m - ahead));
    }
    return lane;
  }

  double noise() {
    std::lognormal_distribution<double> usual(0, 0.2);
    const double drawn = usual(random_);
    return std::uniform_int_distribution<int>(0, 99)(random_) == 0 ? 10 * drawn : drawn;
  }

  void play(int replica, double begin, TimedRound& round) {
    const auto stages = static_cast<std::size_t>(size_.stages);
    const auto first = static_cast<std::size_t>(replica) * stages;
    std::vector<schedules::Lane> lanes;
    lanes.reserve(stages);
    for (int stage = 0; stage < size_.stages; ++stage) lanes.push_back(lane(stage, size_));
    std::vector<std::size_t> at(stages, 0);
    std::vector<double> free(stages, begin);
    std::map<std::tuple<int, bool, std::uint32_t>, double> ends;
    for (bool moves = true; moves;) {
      moves = false;
      for (std::size_t stage = 0; stage < stages; ++stage)
        for (; at[stage] < lanes[stage].size(); ++at[stage], moves = true) {
          const auto action = lanes[stage][at[stage]];
          const bool is_backward = action.kind == schedules::Kind::backward;
          const int from = static_cast<int>(stage) + (is_backward ? 1 : -1);
          double start = free[stage];
          if (from >= 0 && from < size_.stages) {
            const auto sent = ends.find({from, is_backward, action.micro_batch});
            if (sent == ends.end()) break;
            const Ends link{first + static_cast<std::size_t>(from), first + stage};
            const auto late = delays_.find(link);
            start = std::max(start, sent->second + 0.001 / speed_ * noise() +
                                        (late == delays_.end() ? 0 : late->second));
          }
          const bool is_held_up =
              targets_late_ > 0 && !is_backward && static_cast<int>(stage) + 1 == size_.stages;
          if (is_held_up) start += targets_late_;
          const auto device = first + stage;
          const double takes = (is_backward ? 0.02 : 0.01) / speed_ * noise() * slower_[device];
          free[stage] = start + takes;
          ends[{static_cast<int>(stage), is_backward, action.micro_batch}] = free[stage];
          round.devices[device].push_back(
              {action, read(device, start), read(device, free[stage]), is_held_up});
          now_ = std::max(now_, free[stage]);
        }
    }
  }

  std::chrono::nanoseconds read(std::size_t device, double time) const {
    return std::chrono::nanoseconds(
        std::llround(1e9 * (time * drifts_[device] + offsets_[device] + 2e5)));
  }

  using Ends = std::pair<std::size_t, std::size_t>;

  PipelineSize size_;
  std::mt19937_64 random_;
  std::vector<double> offsets_, drifts_, slower_;
  std::map<Ends, double> delays_;
  double targets_late_ = 0;
  double speed_ = 1;
  double now_ = 0;
  std::int64_t step_ = 0;
};

const std::vector<PipelineSize> pipeline_sizes = {
    {3, 1, 4}, {2, 2, 2}, {2, 1, 1}, {1, 2, 1}, {4, 2, 8}};

/// Returns how many seeds to play. TROUPE_SEEDS asks for more.
int seeds_to_play(int usual) {
  const char* asked = std::getenv("TROUPE_SEEDS");
  return asked ? std::max(1, std::atoi(asked)) : usual;
}

}  // namespace

TEST_CASE("a burst of noise in steps of a few milliseconds names nobody, and what lasts is named",
          "[actors]") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    NoisyPipeline pipeline({}, seed);
    pipeline.speed_up(400);
    pipeline.steps(100);
    pipeline.slow_down(1, 4);
    pipeline.steps(6);
    pipeline.slow_down(1, 1);
    pipeline.steps(100);
    CHECK(pipeline.said.empty());
    pipeline.slow_down(1, 4);
    const auto named = pipeline.change_within(12);
    REQUIRE(named);
    CHECK(named->device == 1);
    CHECK(named->cause == Cause::computing);
  }
}

TEST_CASE("nobody is named in 1,000 undisturbed steps under noise", "[actors][stragglers]") {
  const auto size = GENERATE(from_range(pipeline_sizes));
  for (int seed = 0; seed < seeds_to_play(3); ++seed) {
    NoisyPipeline pipeline(size, static_cast<unsigned>(seed));
    pipeline.steps(1000);
    INFO(size.stages << " stages, " << size.replicas << " replicas, seed " << seed);
    CHECK(pipeline.said.empty());
  }
}

TEST_CASE("a device that computes twice as slowly is named within 10 steps",
          "[actors][stragglers]") {
  const auto size = GENERATE(from_range(pipeline_sizes));
  for (int seed = 0; seed < seeds_to_play(20); ++seed) {
    INFO(size.stages << " stages, " << size.replicas << " replicas, seed " << seed);
    NoisyPipeline pipeline(size, static_cast<unsigned>(seed));
    pipeline.steps(60 + seed % 16);
    const auto slow =
        static_cast<std::size_t>(seed) % static_cast<std::size_t>(size.stages * size.replicas);
    const auto before = pipeline.done();
    pipeline.slow_down(slow, 2);
    const auto named = pipeline.change_within(10);
    REQUIRE(named);
    CHECK(named->device == slow);
    CHECK(named->cause == Cause::computing);
    CHECK(named->factor > 1.5);
    CHECK(named->factor < 2.6);
    CHECK(named->share > 0.05);
    CHECK(named->share < 0.65);
    CHECK(named->since >= before - 5);
    pipeline.steps(30);
    pipeline.slow_down(slow, 1);
    const auto over = pipeline.change_within(20);
    REQUIRE(over);
    CHECK(over->now == Straggler::Now::usual);
    CHECK(over->device == slow);
    pipeline.steps(100);
    CHECK(pipeline.said.size() == 2);
    CHECK(pipeline.stragglers.all().empty());
  }
}

TEST_CASE("a late direction of a link is named, whatever the clocks say", "[actors][stragglers]") {
  for (int seed = 0; seed < seeds_to_play(20); ++seed) {
    INFO("seed " << seed);
    NoisyPipeline pipeline({3, 1, 4}, static_cast<unsigned>(seed));
    pipeline.steps(60 + seed % 16);
    const std::size_t from =
        static_cast<std::size_t>(seed) % 2 + static_cast<std::size_t>(seed) / 2 % 2;
    const std::size_t to = seed % 2 == 0 ? from + 1 : from - 1;
    pipeline.delay(from, to, 0.03);
    const auto named = pipeline.change_within(10);
    REQUIRE(named);
    CHECK(named->cause == Cause::link);
    CHECK(named->peer == from);
    CHECK(named->device == to);
    CHECK(named->factor > 5);
    pipeline.delay(from, to, 0);
    const auto over = pipeline.change_within(20);
    REQUIRE(over);
    CHECK(over->now == Straggler::Now::usual);
    pipeline.steps(100);
    CHECK(pipeline.said.size() == 2);
  }
}

TEST_CASE("a burst of noise is not named, but the same slowdown is if it lasts",
          "[actors][stragglers]") {
  NoisyPipeline burst({3, 1, 4}, 9), lasting({3, 1, 4}, 9);
  for (auto* pipeline : {&burst, &lasting}) {
    pipeline->speed_up(10);  // A step takes about 20 ms.
    pipeline->steps(60);
    pipeline->slow_down(1, 1.6);
  }
  burst.steps(20);
  burst.slow_down(1, 1);
  burst.steps(200);
  CHECK(burst.said.empty());
  lasting.steps(100);
  REQUIRE(lasting.said.size() == 1);
  CHECK(lasting.said[0].device == 1);
  CHECK(lasting.said[0].cause == Cause::computing);
}

TEST_CASE("a replica that is slow from the start is named by comparison", "[actors][stragglers]") {
  NoisyPipeline pipeline({2, 3, 4}, 7);
  pipeline.slow_down(3, 2.5);
  const auto named = pipeline.change_within(16);
  REQUIRE(named);
  CHECK(named->device == 3);
  CHECK(named->than == Than::others);
  pipeline.steps(200);
  CHECK(pipeline.said.size() == 1);
}

TEST_CASE("two of three slow devices are both named, but not all three", "[actors][stragglers]") {
  NoisyPipeline two({3, 1, 4}, 1), three({3, 1, 4}, 1);
  for (auto* pipeline : {&two, &three}) pipeline->steps(60);
  for (const std::size_t device : {0, 2}) two.slow_down(device, 3);
  for (const std::size_t device : {0, 1, 2}) three.slow_down(device, 3);
  for (auto* pipeline : {&two, &three}) pipeline->steps(200);
  REQUIRE(two.said.size() == 2);
  CHECK(two.said[0].device + two.said[1].device == 2);
  CHECK(three.said.empty());
}

TEST_CASE("a slowdown without a cost is not named", "[actors][stragglers]") {
  NoisyPipeline pipeline({2, 1, 4}, 3);
  pipeline.steps(60);
  pipeline.slow_down(1, 1.3);   // Within the noise.
  pipeline.delay(0, 1, 0.002);  // Three times longer, but 1 % of a step.
  pipeline.steps(200);
  CHECK(pipeline.said.empty());
}

TEST_CASE("a link that is late both ways is named without a direction", "[actors][stragglers]") {
  NoisyPipeline pipeline({3, 1, 4}, 5);
  pipeline.steps(60);
  pipeline.delay(1, 2, 0.02);
  pipeline.delay(2, 1, 0.02);
  const auto named = pipeline.change_within(10);
  REQUIRE(named);
  CHECK(named->cause == Cause::link_two_way);
  CHECK(named->peer == 1);
  CHECK(named->device == 2);
}

TEST_CASE("a link that is late by less than a busy machine delays threads is not named",
          "[actors][stragglers]") {
  NoisyPipeline short_delay({3, 1, 4}, 5), long_delay({3, 1, 4}, 5);
  for (auto* pipeline : {&short_delay, &long_delay}) {
    pipeline->speed_up(10);
    pipeline->steps(60);
  }
  short_delay.delay(0, 1, 0.0012);
  long_delay.delay(0, 1, 0.0032);
  for (auto* pipeline : {&short_delay, &long_delay}) pipeline->steps(200);
  CHECK(short_delay.said.empty());
  REQUIRE(long_delay.said.size() == 1);
  CHECK(long_delay.said[0].cause == Cause::link);
}

TEST_CASE("late targets are no slow link", "[actors][stragglers]") {
  NoisyPipeline pipeline({3, 1, 4}, 5);
  pipeline.steps(60);
  pipeline.delay_targets(0.03);
  pipeline.steps(100);
  CHECK(pipeline.said.empty());
}

TEST_CASE("a clock that moves names nobody and hides the direction", "[actors][stragglers]") {
  NoisyPipeline pipeline({3, 1, 4}, 5);
  pipeline.steps(60);
  pipeline.move_clock(1, 0.5);
  pipeline.steps(40);
  CHECK(pipeline.said.empty());
  pipeline.delay(0, 1, 0.03);
  const auto named = pipeline.change_within(10);
  REQUIRE(named);
  CHECK(named->peer == 0);
  CHECK(named->device == 1);
  CHECK(named->cause == Cause::link_two_way);
}

TEST_CASE("the steps of an asynchronous round count one by one", "[actors][stragglers]") {
  // One device plays 20 steps of one micro-batch in a round; the forward pass of the next step
  // comes before the backward pass. From step 41 on it is three times slower.
  Stragglers stragglers;
  stragglers.attempt_begins({"alpha"}, 1);
  std::vector<Straggler> said;
  std::chrono::milliseconds now{};
  for (int first = 0; first < 60; first += 20) {
    TimedRound round{.first_step = first,
                     .steps = 20,
                     .micro_batches_in_step = 1,
                     .took = std::chrono::milliseconds(20 * 30),
                     .devices = {{}}};
    const auto play = [&](const schedules::Action& action, int milliseconds) {
      const int times = first + static_cast<int>(action.micro_batch) >= 40 ? 3 : 1;
      const auto start = now;
      now += std::chrono::milliseconds(times * milliseconds);
      round.devices[0].push_back({action, start, now, false});
    };
    play(schedules::forward(0, 0), 10);
    for (int m = 0; m < 20; ++m) {
      if (m < 19) play(schedules::forward(0, m + 1), 10);
      play(schedules::backward(0, m), 20);
    }
    for (const auto& one : stragglers.add(round)) said.push_back(one);
  }
  REQUIRE(said.size() == 1);
  CHECK(said[0].device == 0);
  CHECK(said[0].since == 41);
  CHECK(said[0].factor == Approx(3));
}
