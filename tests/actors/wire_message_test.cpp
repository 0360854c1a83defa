#include "actors/nodes/wire_message.h"

#include <cmath>
#include <limits>
#include <tuple>
#include <type_traits>

#include "actors/caf_shim.h"
#include "catch.h"
#include "core/memory/tensor.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

/// Sends messages out of the process and in again.
class Journey {
 public:
  Journey() : config_(1), system_(config_), self_(system_) {
    spec_.round = [](std::int64_t, std::int64_t steps) {
      Round round;
      round.steps = static_cast<int>(steps);
      return std::make_shared<const Round>(round);
    };
    spec_.evaluation = std::make_shared<const Round>();
    bounds_ = {.replicas = 3,
               .devices = 4,
               .stages = 5,
               .sections = 5,
               .optimizers = 25,
               .micro_batches = 100,
               .evaluated = 100,
               .holders = {5, {0, 1, 2}}};
    placement_.stages.resize(12);
    placement_.optimizers.resize(25);
    placement_.inputs.resize(3);
    placement_.targets.resize(3);
  }

  template <class Message>
  Message there(const Message& message) {
    auto delivered = deliver(to_wire_message(message, memory_), from(receiver_of<Message>()), spec_,
                             caf::actor_cast<caf::actor>(self_));
    INFO((delivered ? "" : delivered.error().text));
    REQUIRE(delivered.ok());
    std::optional<Message> arrived;
    self_->receive([&](Message& came) { arrived = std::move(came); });
    return std::move(*arrived);
  }
  std::string refused(WireMessage wire_message, PlayerId to = the_supervisor) {
    const auto delivered =
        deliver(std::move(wire_message), from(to), spec_, caf::actor_cast<caf::actor>(self_));
    return delivered ? "" : delivered.error().text;
  }
  template <class Message>
  std::string refused(const Message& message) {
    return refused(to_wire_message(message, memory_), receiver_of<Message>());
  }
  /// From now on everything comes from a process that has no player.
  void speak_as_stranger() { ++process_; }
  Tensor tensor(float value) {
    Tensor made = Tensor::make(memory_, {2, 3});
    for (int i = 0; i < 6; ++i) made.f32()[i] = value + static_cast<float>(i);
    return made;
  }
  MemoryPool& memory() { return memory_; }

 private:
  /// A player that takes such messages.
  template <class Message>
  static PlayerId receiver_of() {
    using Kind = PlayerId::Kind;
    constexpr auto is_any = []<class... Any>(std::tuple<Any...>*) {
      return (std::is_same_v<Message, Any> || ...);
    };
    if (is_any(static_cast<std::tuple<Play, Activation, LoanFor, NewWeights>*>(nullptr)))
      return {Kind::stage, 0};
    if (is_any(static_cast<std::tuple<StepGradients, Norms, KeepStep>*>(nullptr)))
      return {Kind::optimizer, 0};
    if (std::is_same_v<Message, StateCopy>) return {Kind::keeper, 0};
    return the_supervisor;
  }
  /// One process has all players, and is the head's too.
  Sender from(PlayerId to) const { return {process_, to, placement_, bounds_}; }

  int process_ = 0;
  RunBounds bounds_;
  Placement placement_;
  MemoryPool memory_;
  RunSpec spec_;
  caf_shim::Config config_;
  caf::actor_system system_;
  caf::scoped_actor self_;
};

const Header header{.first_step = 7,
                    .m = 3,
                    .samples = digest_of("some"),
                    .content = digest_of("bytes"),
                    .gap_factor = 1.5};

void check_same(const Header& a, const Header& b) {
  CHECK(a.first_step == b.first_step);
  CHECK(a.m == b.m);
  CHECK(a.samples == b.samples);
  CHECK(a.gap_factor == b.gap_factor);
}

}  // namespace

TEST_CASE("what players say to one another arrives as it left", "[actors]") {
  Journey journey;
  const auto activation = journey.there(Activation{header, 2, journey.tensor(5)});
  check_same(activation.header, header);
  CHECK(activation.stage == 2);
  CHECK(activation.value.f32()[5] == 10);

  const auto loan = journey.there(LoanFor{header, 1, {"wte.weight", 42, journey.tensor(1)}});
  CHECK(loan.loan.name == "wte.weight");
  CHECK(loan.loan.tag == 42);
  CHECK(loan.loan.value.f32()[0] == 1);

  auto share = std::make_shared<models::GradientShare>();
  share->rate_share = 0.25;
  share->sums.push_back({4, 2, {journey.tensor(1), Tensor(), journey.tensor(2)}});
  share->sums.push_back({6, 1, {journey.tensor(3), journey.tensor(4), Tensor()}});
  share->statistics = {{journey.tensor(8)}, {}};
  const auto given = journey.there(StepGradients{9, 2, 1, share});
  CHECK(given.step == 9);
  CHECK(given.stage == 2);
  CHECK(given.holder == 1);
  CHECK(given.gradients->rate_share == 0.25);
  REQUIRE(given.gradients->sums.size() == 2);
  CHECK(given.gradients->sums[1].first_group == 6);
  CHECK(given.gradients->sums[0].groups == 2);
  CHECK(given.gradients->sums[0].slots[1].empty());
  CHECK(given.gradients->sums[1].slots[1].f32()[0] == 4);
  REQUIRE(given.gradients->statistics.size() == 2);
  CHECK(given.gradients->statistics[0][0].f32()[0] == 8);
  CHECK(given.gradients->statistics[1].empty());

  auto weights = std::make_shared<models::Weights>();
  weights->version = 11;
  weights->loss_scale = {.power = 16, .steady_steps = 5, .skipped_steps = 2};
  weights->slots = {{journey.tensor(1), {}}, {Tensor(), {}}};
  weights->buffers = {journey.tensor(6)};
  const Tensor moment = journey.tensor(7);
  const auto published = journey.there(
      NewWeights{3, 4, {weights, {{moment}, {}}}, {WorkTime{}.start, WorkTime{}.end}});
  CHECK(published.stage == 3);
  CHECK(published.section == 4);
  CHECK(published.version.weights->version == 11);
  CHECK(published.version.weights->loss_scale == weights->loss_scale);
  CHECK(published.version.weights->slots[1].value.empty());
  CHECK(published.version.weights->buffers[0].f32()[0] == 6);
  REQUIRE(published.version.moments.size() == 2);
  CHECK(published.version.moments[0][0].f32()[0] == 7);
  // They change with the next step, so they are not shared.
  CHECK(published.version.moments[0][0].raw() != moment.raw());
}

TEST_CASE("what a supervisor hears from afar is what was said", "[actors]") {
  Journey journey;
  const double none = std::numeric_limits<double>::quiet_NaN();
  const auto loss = journey.there(MicroBatchLoss{2, 1, 0, 33, 5, Round::Purpose::evaluation, none,
                                                 digest_of(std::string("samples")),
                                                 digest_of(std::string("bytes"))});
  CHECK(loss.content == digest_of(std::string("bytes")));
  CHECK(loss.attempt == 2);
  CHECK(loss.step == 33);
  CHECK(loss.purpose == Round::Purpose::evaluation);
  CHECK(std::isnan(loss.mean));
  CHECK(loss.samples == digest_of(std::string("samples")));

  const auto norms = journey.there(Norms{2, 3, {{"a.weight", {0.1, 4}, 7}, {"b", {none}}}});
  REQUIRE(norms.squares.size() == 2);
  CHECK(norms.squares[0].name == "a.weight");
  CHECK(norms.squares[0].blocks == std::vector<double>{0.1, 4});
  CHECK(norms.squares[0].first_block == 7);
  CHECK(std::isnan(norms.squares[1].blocks.at(0)));
  CHECK(norms.squares[1].first_block == 0);

  const auto time = [](int count) {
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(count));
  };
  const auto done = journey.there(StepDone{1, 2, 3, 0, true, 0x1p24, 4});
  CHECK(done.is_skipped);
  CHECK(done.loss_scale == 0x1p24);
  CHECK(done.skipped_steps == 4);

  const auto spans = std::make_shared<const std::vector<DeviceSpan>>(
      std::vector<DeviceSpan>{{schedules::forward(1, 4), {time(5), time(9)}},
                              {schedules::backward(1, 4), {time(9), time(20)}}});
  const auto played = journey.there(RoundPlayed{1, 0, 1, 8, Round::Purpose::training, spans, 17});
  REQUIRE(played.spans->size() == 2);
  CHECK(played.spans->back().action == schedules::backward(1, 4));
  CHECK(played.spans->back().time.end == time(20));
  CHECK(played.most_parcels == 17);

  const auto pulse = journey.there(
      Pulse{4, {PlayerId::Kind::optimizer, 6}, waits("step 2 waits for gradients"), 3});
  CHECK(pulse.attempt == 4);
  CHECK(pulse.who == PlayerId{PlayerId::Kind::optimizer, 6});
  CHECK(pulse.wait == waits("step 2 waits for gradients"));

  const auto snapshot =
      journey.there(Snapshot{1,
                             2,
                             3,
                             {{"w", journey.tensor(1)}},
                             {{"w.m", journey.tensor(2)}, {"w.v", journey.tensor(3)}},
                             {.power = 24, .steady_steps = 7, .skipped_steps = 9}});
  CHECK(snapshot.loss_scale == models::LossScale{24, 7, 9});
  CHECK(snapshot.weights[0].name == "w");
  CHECK(snapshot.moments[1].name == "w.v");
  CHECK(snapshot.moments[1].tensor.f32()[0] == 3);

  const auto copy = journey.there(
      StateCopy{{1, 2, 3, {{"w", journey.tensor(1)}}, {{"w.m", journey.tensor(2)}}, {8, 1, 4}}, 9});
  CHECK(copy.line == 9);
  CHECK(copy.state.optimizer == 2);
  CHECK(copy.state.step == 3);
  CHECK(copy.state.loss_scale == models::LossScale{8, 1, 4});
  CHECK(copy.state.moments.at(0).tensor.f32()[0] == 2);

  const auto kept = journey.there(Kept{1, 2, 3, std::chrono::microseconds(4), true, "no room"});
  CHECK(kept.step == 3);
  CHECK(kept.took == std::chrono::microseconds(4));
  CHECK(kept.is_late);
  CHECK(kept.why_not == "no room");
  CHECK(journey.there(KeepStep{7, 5}).line == 5);

  Round round;
  round.steps = 3;
  const auto play = journey.there(Play{std::make_shared<const Round>(round), 12});
  CHECK(play.first_step == 12);
  CHECK(play.round->steps == 3);
}

TEST_CASE("a message that is none is refused with the place", "[actors]") {
  Journey journey;
  auto without = to_wire_message(Activation{header, 2, journey.tensor(5)}, journey.memory());
  without.tensors.clear();
  CHECK(journey.refused(without) == "activation: found 0 tensors, wanted 1");

  auto of_other_sizes = to_wire_message(Norms{2, 3, {{"a", {1}}, {"b", {2}}}}, journey.memory());
  of_other_sizes.bytes.resize(8);
  CHECK(journey.refused(of_other_sizes) ==
        "norms: found 2 names and 1 numbers for 2 blocks of 2 parameters");
  of_other_sizes.bytes.resize(7);
  CHECK(journey.refused(of_other_sizes).find("found 7 bytes") != std::string::npos);

  auto share = std::make_shared<models::GradientShare>();
  share->sums.push_back({0, 1, {journey.tensor(1), Tensor()}});
  auto gradients = to_wire_message(StepGradients{9, 2, 1, share}, journey.memory());
  gradients.body.set("mask", "11");
  CHECK(journey.refused(gradients).find("found 1 tensors for 2 of 2 places") != std::string::npos);

  auto of_no_line = to_wire_message(StateCopy{{1, 2, 3, {}, {}, {}}, 9}, journey.memory());
  of_no_line.body.set("line", "9");
  CHECK(journey.refused(of_no_line) == "state_copy: names no line");

  auto of_another_scale = to_wire_message(Snapshot{1, 2, 3, {}, {}, {25, 0, 0}}, journey.memory());
  CHECK(journey.refused(of_another_scale).find("loss_scale.power") != std::string::npos);

  auto nameless = to_wire_message(Divergence{1, 2, 3, "a.weight"}, journey.memory());
  nameless.body.set("parameter", 4);
  CHECK(journey.refused(nameless).find("divergence.parameter: found") != std::string::npos);
  CHECK(journey.refused({"gossip", Value::Map{}, "", {}}).find("'gossip'") != std::string::npos);
}

TEST_CASE("what must not be said is refused before its player hears of it", "[actors]") {
  Journey journey;
  const auto spans = std::make_shared<const std::vector<DeviceSpan>>();
  const RoundPlayed played{1, 0, 1, 8, Round::Purpose::training, spans, 17};
  const auto with = [&](auto change) {
    auto changed = played;
    change(changed);
    return journey.refused(changed);
  };
  CHECK(journey.refused(played).empty());
  CHECK(with([](auto& it) { it.device = 268'435'456; }) ==
        "round_played: found device 268435456, wanted 0 to 3");
  CHECK(with([](auto& it) { it.replica = -1; }) == "round_played: found replica -1, wanted 0 to 2");
  CHECK(with([](auto& it) { it.first_step = -1; }).find("found step -1") != std::string::npos);
  CHECK(with([](auto& it) { it.most_parcels = std::size_t{1} << 40; }).find("most parcels") !=
        std::string::npos);

  const auto span = [](schedules::Action action, std::int64_t start, std::int64_t end) {
    const auto time = [](std::int64_t count) {
      return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(count));
    };
    return std::vector<DeviceSpan>{{action, {time(start), time(end)}}};
  };
  const auto with_spans = [&](const std::vector<DeviceSpan>& told) {
    return with(
        [&](auto& it) { it.spans = std::make_shared<const std::vector<DeviceSpan>>(told); });
  };
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  auto of_no_kind = schedules::forward(1, 4);
  of_no_kind.kind = static_cast<schedules::Kind>(200);
  CHECK(with_spans(span(schedules::forward(1, 4), 5, 9)).empty());
  CHECK(with_spans(span(of_no_kind, 5, 9)).find("action") != std::string::npos);
  CHECK(with_spans(span(schedules::forward(5, 4), 5, 9)).find("action") != std::string::npos);
  CHECK(with_spans(span(schedules::forward(1, 4), 9, 5)).find("times") != std::string::npos);
  CHECK(with_spans(span(schedules::forward(1, 4), 0, most)).find("times") != std::string::npos);
  CHECK(with_spans(span(schedules::forward(1, 4), -most, most)).find("times") != std::string::npos);

  const Digest some = digest_of("some");
  CHECK(journey.refused(MicroBatchLoss{1, 0, 0, 3, 100, Round::Purpose::training, 1, some, some}) ==
        "micro_batch_loss: found micro-batch 100, wanted 0 to 99");
  CHECK(journey.refused(StepDone{1, 25, 3, 1, false, 1, 0}) ==
        "step_done: found optimizer 25, wanted 0 to 24");
  CHECK(journey.refused(LateGradients{1, 5, 3, {}}) ==
        "late_gradients: found stage 5, wanted 0 to 4");
  CHECK(journey.refused(Pulse{1, {PlayerId::Kind::stage, 12}, {}, 0}).find("does not have") !=
        std::string::npos);
  CHECK_FALSE(journey.refused(Kept{1, 2, 3, std::chrono::nanoseconds(-1), false, ""}).empty());
  CHECK(journey.refused(to_wire_message(TakeSnapshot{}, journey.memory()), the_supervisor)
            .find("does not take it") != std::string::npos);

  // Nothing is allocated by a number that is told.
  auto weights = std::make_shared<models::Weights>();
  auto greedy = to_wire_message(NewWeights{0, 0, {weights, {}}, {}}, journey.memory());
  greedy.body.set("moments", Value::List(100, Value(2'000'000'000)));
  CHECK(journey.refused(greedy, {PlayerId::Kind::stage, 0}) ==
        "new_weights: found 0 tensors, but 200000000000 moments are told");

  journey.speak_as_stranger();
  CHECK(journey.refused(played) ==
        "round_played: found it from process 1, but the player it speaks for is in process 0");
  CHECK(journey.refused(StepDone{1, 2, 3, 1, false, 1, 0}).find("in process 0") !=
        std::string::npos);
  CHECK(journey.refused(KeepStep{7, 5}).find("only the head") != std::string::npos);
}
