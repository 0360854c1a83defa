#include "actors/nodes/wire_message.h"

#include <cmath>
#include <limits>
#include <tuple>
#include <type_traits>

#include "actors/caf_shim.h"
#include "actors/device_thread.h"
#include "catch.h"
#include "core/memory/tensor.h"
#include "honest_tensors.h"
#include "little_run.h"
#include "models/train/shared_parameters.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

/// Returns a piece with four stages and three replicas, so with twelve optimizers.
Piece piece_of_twelve(const std::string& model) {
  RoundShape shape;
  shape.stages = 4;
  shape.replicas = 3;
  shape.micro_batches = shape.groups = 12;
  return Piece::of(model, shape);
}

/// Returns a piece whose stages use moments and whose gradients have several sets.
Piece late_piece(const std::string& model) {
  RoundShape shape;
  shape.schedule = "pipedream";
  shape.stages = 2;
  shape.micro_batches = shape.groups = 4;
  Piece piece = Piece::of(model, shape);
  piece.staleness.gap_penalty = models::StalenessOptions::GapPenalty::elementwise;
  return piece;
}

/// Converts messages to their wire form and back.
class Journey {
 public:
  explicit Journey(const Piece& piece = piece_of_twelve("gpt2"))
      : run_(piece),
        executor_(1),
        spec_(run_.spec([this]() -> Executor& { return executor_; })),
        bounds_(RunBounds::of(*spec_)),
        honest_(*spec_, *bounds_.tensors, memory_),
        config_(1),
        system_(config_),
        self_(system_) {
    const auto replicas = static_cast<std::size_t>(bounds_.replicas);
    placement_.processes = 2;
    placement_.stages.resize(replicas * static_cast<std::size_t>(bounds_.devices));
    placement_.optimizers.resize(static_cast<std::size_t>(bounds_.optimizers));
    placement_.inputs.resize(replicas);
    placement_.targets.resize(replicas);
  }

  template <class Message>
  Message there(const Message& message, PlayerId to = the_supervisor) {
    auto delivered = deliver(to_wire_message(message, memory_), from(Message::type, to), *spec_,
                             caf::actor_cast<caf::actor>(self_));
    INFO((delivered ? "" : delivered.error().text));
    REQUIRE(delivered.ok());
    std::optional<Message> arrived;
    self_->receive([&](Message& came) { arrived = std::move(came); });
    return std::move(*arrived);
  }
  std::string refused(WireMessage wire_message, PlayerId to = the_supervisor) {
    const auto sender = from(wire_message.type, to);
    const auto delivered =
        deliver(std::move(wire_message), sender, *spec_, caf::actor_cast<caf::actor>(self_));
    return delivered ? "" : delivered.error().text;
  }
  template <class Message>
  std::string refused(const Message& message, PlayerId to = the_supervisor) {
    return refused(to_wire_message(message, memory_), to);
  }
  /// Sends all further messages from a process that has no player.
  void speak_as_stranger() { is_stranger_ = true; }
  Tensor tensor(float value) {
    Tensor made = Tensor::make(memory_, {2, 3});
    for (int i = 0; i < 6; ++i) made.f32()[i] = value + static_cast<float>(i);
    return made;
  }
  MemoryPool& memory() { return memory_; }
  const RunSpec& spec() const { return *spec_; }
  const TensorBounds& tensors() const { return *bounds_.tensors; }
  const HonestTensors& honest() const { return honest_; }

 private:
  /// Returns a sender. One process has all players, and the head is another one.
  Sender from(std::string_view type, PlayerId to) const {
    const bool is_order =
        type == Play::type || type == TakeSnapshot::type || type == KeepStep::type;
    return {is_stranger_ ? 2 : is_order ? 1 : 0, to, placement_, bounds_};
  }

  LittleRun run_;
  ComputingThread executor_;
  std::shared_ptr<RunSpec> spec_;
  RunBounds bounds_;
  MemoryPool memory_;
  HonestTensors honest_;
  Placement placement_;
  bool is_stranger_ = false;
  caf_shim::Config config_;
  caf::actor_system system_;
  caf::scoped_actor self_;
};

constexpr PlayerId first_optimizer{PlayerId::Kind::optimizer, 0};
constexpr PlayerId device_player(int index) { return {PlayerId::Kind::stage, index}; }

const Header header{.first_step = 7,
                    .m = 3,
                    .samples = digest_of("some"),
                    .content = digest_of("bytes"),
                    .counted = 5,
                    .gap_factor = 1.5};

void check_same(const Header& a, const Header& b) {
  CHECK(a.first_step == b.first_step);
  CHECK(a.m == b.m);
  CHECK(a.samples == b.samples);
  CHECK(a.counted == b.counted);
  CHECK(a.gap_factor == b.gap_factor);
}

}  // namespace

TEST_CASE("messages between players survive the wire unchanged", "[actors]") {
  Journey journey;
  auto sent = journey.honest().activation(2);
  sent.header = header;
  sent.value.stream.f32()[5] = 10;
  const auto activation = journey.there(sent, device_player(2));
  check_same(activation.header, header);
  CHECK(activation.stage == 2);
  CHECK(activation.value.stream.f32()[5] == 10);

  const auto shared = models::shared_parameters(*journey.spec().model, journey.spec().stages);
  REQUIRE(shared.size() == 1);
  Tensor value;
  for (const auto& parameter : journey.spec().model->units[0].layer->parameters())
    if (parameter.name == shared[0].name) value = journey.honest().tensor({parameter.shape});
  value.f32()[0] = 1;
  const auto loan =
      journey.there(LoanFor{header, 3, {shared[0].name, 42, value}}, device_player(3));
  CHECK(loan.loan.name == shared[0].name);
  CHECK(loan.loan.tag == 42);
  CHECK(loan.loan.value.f32()[0] == 1);
}

TEST_CASE("gradients and weights of an asynchronous run survive the wire unchanged", "[actors]") {
  Journey journey(late_piece("resnet"));
  auto given = journey.honest().gradients(0, 0, 0);
  auto& gradients = *given.gradients;
  const auto count = gradients.sums[0].slots.size();
  const auto sets = models::GradientSets::of(journey.spec().optimizer, journey.spec().staleness);
  REQUIRE(sets.count > 2);
  gradients.rate_share = 0.25;
  gradients.targets = {.all = 12, .counted = 7};
  gradients.sums[0].groups = 2;
  gradients.sums.push_back({2, 1, {}});
  for (auto& sum : gradients.sums) {
    sum.slots.resize(count);
    for (std::size_t slot = 0; slot < count; ++slot)
      sum.slots[slot] = journey.honest().tensor({gradients.sums[0].slots[slot].shape()});
    for (std::size_t slot = 0; slot < count; ++slot) sum.slots.push_back(sum.slots[slot]);
    sum.slots.resize(count * static_cast<std::size_t>(sets.count));
  }
  gradients.sums[1].slots[count - 1].f32()[0] = 4;
  gradients.statistics[0][0].f32()[0] = 8;
  const auto arrived = journey.there(given, first_optimizer);
  CHECK(arrived.gradients->rate_share == 0.25);
  CHECK(arrived.gradients->targets == models::TargetCount{12, 7});
  REQUIRE(arrived.gradients->sums.size() == 2);
  CHECK(arrived.gradients->sums[1].first_group == 2);
  CHECK(arrived.gradients->sums[0].groups == 2);
  CHECK(arrived.gradients->sums[0].slots.back().empty());
  CHECK(arrived.gradients->sums[1].slots[count - 1].f32()[0] == 4);
  CHECK(arrived.gradients->statistics[0][0].f32()[0] == 8);

  const auto told = journey.honest().weights(0, 11);
  auto weights = std::make_shared<models::Weights>(*told.version.weights);
  weights->loss_scale = {.power = 16, .steady_steps = 5, .skipped_steps = 2};
  weights->buffers[0].f32()[0] = 6;
  const Tensor moment = told.version.moments[0][0];
  const auto published =
      journey.there(NewWeights{0, 0, {weights, told.version.moments}, {}}, device_player(0));
  CHECK(published.stage == 0);
  CHECK(published.section == 0);
  CHECK(published.version.weights->version == 11);
  CHECK(published.version.weights->loss_scale == weights->loss_scale);
  CHECK(published.version.weights->buffers[0].f32()[0] == 6);
  REQUIRE(published.version.moments.size() == told.version.moments.size());
  // Moments change with the next step, so they must not be shared.
  CHECK(published.version.moments[0][0].raw() != moment.raw());
}

TEST_CASE("messages to a remote supervisor survive the wire unchanged", "[actors]") {
  Journey journey;
  const double none = std::numeric_limits<double>::quiet_NaN();
  const auto loss = journey.there(MicroBatchLoss{2, 1, 0, 33, 5, Round::Purpose::evaluation, none,
                                                 digest_of(std::string("samples")),
                                                 digest_of(std::string("bytes")), 7});
  CHECK(loss.counted == 7);
  CHECK(loss.content == digest_of(std::string("bytes")));
  CHECK(loss.attempt == 2);
  CHECK(loss.step == 33);
  CHECK(loss.purpose == Round::Purpose::evaluation);
  CHECK(std::isnan(loss.mean));
  CHECK(loss.samples == digest_of(std::string("samples")));

  auto piece = piece_of_twelve("wide");
  piece.shape.stages = 1;
  Journey in_fp16(piece.in_fp16(1));
  auto told = in_fp16.honest().norms(1);
  told.squares[0].blocks[0] = none;
  const auto norms = in_fp16.there(told, first_optimizer);
  REQUIRE(norms.squares.size() == told.squares.size());
  CHECK(norms.squares[0].name == told.squares[0].name);
  CHECK(norms.squares[0].first_block == 0);
  CHECK(std::isnan(norms.squares[0].blocks[0]));
  CHECK(in_fp16.there(in_fp16.honest().norms(2), first_optimizer).squares[0].first_block == 1);

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
  const auto played =
      journey.there(RoundPlayed{1, 0, 1, 8, Round::Purpose::training, spans, 17, {1}});
  REQUIRE(played.spans->size() == 2);
  CHECK(played.held_up == std::vector<int>{1});
  CHECK(played.spans->back().action == schedules::backward(1, 4));
  CHECK(played.spans->back().time.end == time(20));
  CHECK(played.most_parcels == 17);

  const auto pulse = journey.there(
      Pulse{4, {PlayerId::Kind::optimizer, 6}, waits("step 2 waits for gradients"), 3});
  CHECK(pulse.attempt == 4);
  CHECK(pulse.who == PlayerId{PlayerId::Kind::optimizer, 6});
  CHECK(pulse.wait == waits("step 2 waits for gradients"));

  auto state = journey.honest().state(2, 3);
  state.loss_scale = {.power = 24, .steady_steps = 7, .skipped_steps = 9};
  state.moments[1].tensor.f32()[0] = 3;
  const auto snapshot = journey.there(state);
  CHECK(snapshot.loss_scale == models::LossScale{24, 7, 9});
  CHECK(snapshot.weights[0].name == state.weights[0].name);
  CHECK(snapshot.moments[1].name == state.moments[1].name);
  CHECK(snapshot.moments[1].tensor.f32()[0] == 3);

  const auto copy = journey.there(StateCopy{state, 9}, {PlayerId::Kind::keeper, 0});
  CHECK(copy.line == 9);
  CHECK(copy.state.optimizer == 2);
  CHECK(copy.state.step == 3);
  CHECK(copy.state.loss_scale == models::LossScale{24, 7, 9});
  CHECK(copy.state.moments.at(1).tensor.f32()[0] == 3);

  const auto kept = journey.there(Kept{1, 2, 3, std::chrono::microseconds(4), true, "no room"});
  CHECK(kept.step == 3);
  CHECK(kept.took == std::chrono::microseconds(4));
  CHECK(kept.is_late);
  CHECK(kept.why_not == "no room");
  CHECK(journey.there(KeepStep{7, 5}, first_optimizer).line == 5);

  const auto play = journey.there(Play{journey.spec().round(2, 1), 2}, device_player(0));
  CHECK(play.first_step == 2);
  CHECK(play.round->steps == 1);
}

TEST_CASE("a malformed wire message is refused with the place of the error", "[actors]") {
  Journey journey;
  auto without = to_wire_message(journey.honest().activation(2), journey.memory());
  without.tensors.clear();
  CHECK(journey.refused(without, device_player(2)) ==
        "activation: found the input of stage 2 as nothing, wanted f32 [2, 5, 8]");

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

TEST_CASE("a forbidden message is refused before its player receives it", "[actors]") {
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

  CHECK(with([](auto& it) { it.held_up = {0}; }).find("held up") != std::string::npos);
  CHECK(with([](auto& it) { it.held_up = {-1}; }).find("held_up") != std::string::npos);

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
  CHECK(with_spans(span(schedules::forward(4, 4), 5, 9)).find("action") != std::string::npos);
  CHECK(with_spans(span(schedules::forward(1, 4), 9, 5)).find("times") != std::string::npos);
  CHECK(with_spans(span(schedules::forward(1, 4), 0, most)).find("times") != std::string::npos);
  CHECK(with_spans(span(schedules::forward(1, 4), -most, most)).find("times") != std::string::npos);

  const Digest some = digest_of("some");
  CHECK(journey.refused(MicroBatchLoss{1, 0, 0, 3, 12, Round::Purpose::training, 1, some, some}) ==
        "micro_batch_loss: found micro-batch 12, wanted 0 to 11");
  CHECK(journey.refused(StepDone{1, 12, 3, 1, false, 1, 0}) ==
        "step_done: found optimizer 12, wanted 0 to 11");
  CHECK(journey.refused(LateGradients{1, 4, 3, {}}) ==
        "late_gradients: found stage 4, wanted 0 to 3");
  CHECK(journey.refused(Pulse{1, {PlayerId::Kind::stage, 12}, {}, 0}).find("does not have") !=
        std::string::npos);
  CHECK_FALSE(journey.refused(Kept{1, 2, 3, std::chrono::nanoseconds(-1), false, ""}).empty());
  CHECK(journey.refused(to_wire_message(TakeSnapshot{}, journey.memory()), the_supervisor)
            .find("does not take it") != std::string::npos);

  // A number in a message must not cause an allocation.
  auto weights = std::make_shared<models::Weights>();
  auto greedy = to_wire_message(NewWeights{0, 0, {weights, {}}, {}}, journey.memory());
  greedy.body.set("moments", Value::List(100, Value(2'000'000'000)));
  CHECK(journey.refused(greedy, {PlayerId::Kind::stage, 0}) ==
        "new_weights: found 0 tensors, but 200000000000 moments are told");

  journey.speak_as_stranger();
  CHECK(journey.refused(played) ==
        "round_played: found it from process 2, but the player it speaks for is in process 0");
  CHECK(journey.refused(StepDone{1, 2, 3, 1, false, 1, 0}).find("in process 0") !=
        std::string::npos);
  CHECK(journey.refused(KeepStep{7, 5}, first_optimizer).find("only the head") !=
        std::string::npos);
}

namespace {

/// Changes one tensor after another of a message, each in several ways.
void refuse_other_forms(Journey& journey, const WireMessage& honest, PlayerId to) {
  CAPTURE(honest.type);
  CHECK(journey.refused(honest, to).empty());
  for (std::size_t i = 0; i < honest.tensors.size(); ++i) {
    CAPTURE(i);
    const Tensor& own = honest.tensors[i];
    const auto with = [&](const Tensor& other) {
      auto changed = honest;
      changed.tensors[i] = other;
      return journey.refused(std::move(changed), to);
    };
    const auto type = own.dtype() == DType::f32 ? DType::i32 : DType::f32;
    CHECK(with(Tensor::over(own.holding(), 0, own.shape(), type)).find("wanted") !=
          std::string::npos);
    Shape deeper{1};
    for (const auto size : own.shape()) deeper.append(size);
    CHECK(with(own.reshaped(deeper)).find("wanted") != std::string::npos);
    CHECK_FALSE(with(Tensor::make(journey.memory(), {3, own.count()}, own.dtype())).empty());
    CHECK_FALSE(with(Tensor::make(journey.memory(), {0}, own.dtype())).empty());
    auto without = honest;
    without.tensors.erase(without.tensors.begin() + static_cast<std::ptrdiff_t>(i));
    CHECK_FALSE(journey.refused(std::move(without), to).empty());
    auto twice = honest;
    twice.tensors.push_back(own);
    CHECK_FALSE(journey.refused(std::move(twice), to).empty());
  }
}

}  // namespace

TEST_CASE("a tensor of a peer with another form than the run's reaches no player", "[actors]") {
  for (const auto& piece : {piece_of_twelve("gpt2"), piece_of_twelve("resnet"),
                            piece_of_twelve("vit"), piece_of_twelve("pair"), piece_of_twelve("t5"),
                            late_piece("resnet"), late_piece("llama")}) {
    CAPTURE(piece.model, piece.shape.schedule);
    Journey journey(piece);
    const auto& honest = journey.honest();
    const auto refuse = [&](const auto& message, PlayerId to) {
      refuse_other_forms(journey, to_wire_message(message, journey.memory()), to);
    };
    const int stages = static_cast<int>(journey.spec().stages.size());
    refuse(honest.targets(), device_player(stages - 1));
    for (int stage = 0; stage < stages; ++stage) {
      refuse(honest.activation(stage), device_player(stage));
      if (stage + 1 < stages) refuse(honest.gradient(stage), device_player(stage));
    }
    for (int optimizer = 0; optimizer < optimizers_of(journey.spec()); ++optimizer) {
      const PlayerId to{PlayerId::Kind::optimizer, optimizer};
      for (const auto& [stage, forms] : journey.tensors().gradients_for(optimizer))
        refuse(honest.gradients(optimizer, stage, 0), to);
      for (const std::int64_t version : {0, 7}) {
        refuse(honest.weights(optimizer, version),
               device_player(place_of(journey.spec(), optimizer).stage));
        refuse(honest.state(optimizer, version), the_supervisor);
        refuse(StateCopy{honest.state(optimizer, version), 0}, {PlayerId::Kind::keeper, 0});
      }
    }
  }
}

TEST_CASE("targets that do not count reach the last stage of a model that ignores them",
          "[actors]") {
  Piece piece = piece_of_twelve("gpt2");
  piece.left_out = [](std::int64_t) { return 1; };
  Journey ignoring(piece), plain;
  auto targets = ignoring.honest().targets();
  targets.value.numbers<std::int32_t>()[3] = -100;
  CHECK(ignoring.refused(targets, device_player(3)).empty());
  CHECK(plain.refused(targets, device_player(3)) ==
        "targets: found -100 in targets, wanted 0 to 10");
  targets.value.numbers<std::int32_t>()[2] = -99;
  CHECK(ignoring.refused(targets, device_player(3)) ==
        "targets: found -99 in targets, wanted 0 to 10");
}

TEST_CASE("numbers that are targets of a peer are within their bounds", "[actors]") {
  const auto refused = [](Journey& journey, float number) {
    auto targets = journey.honest().targets();
    targets.value.numbers<float>()[2] = number;
    return journey.refused(targets, device_player(3));
  };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float none = std::numeric_limits<float>::quiet_NaN();
  Journey squared(piece_of_twelve("gauge")), binary(piece_of_twelve("segmenter"));
  CHECK(refused(squared, -7).empty());
  CHECK(refused(squared, none).empty());
  CHECK(refused(squared, infinity) ==
        "targets: found inf in targets, wanted finite numbers or NaN");
  CHECK(refused(binary, 0.5f).empty());
  CHECK(refused(binary, none).empty());
  CHECK(refused(binary, 1.5f) == "targets: found 1.5 in targets, wanted 0 to 1 or NaN");
  auto targets = squared.honest().targets();
  targets.value = Tensor::make(squared.memory(), targets.value.shape(), DType::i32);
  CHECK(squared.refused(targets, device_player(3)).find("wanted f32") != std::string::npos);
}

TEST_CASE("inputs of a peer are within their bounds", "[actors]") {
  Journey journey(piece_of_twelve("pair"));
  const auto refused = [&](auto change) {
    auto message = journey.honest().activation(0);
    REQUIRE(message.value.kept.size() == 3);
    change(message.value);
    return journey.refused(message, device_player(0));
  };
  CHECK(refused([](auto&) {}).empty());
  CHECK(refused([](auto& it) { it.kept[0].template numbers<std::int32_t>()[4] = 3; }) ==
        "activation: found 3 in the input of stage 0, kept value marks, wanted 0 to 2");
  CHECK(refused([](auto& it) { it.kept[1].template numbers<std::int32_t>()[0] = -1; }) ==
        "activation: found -1 in the input of stage 0, kept value others, wanted 0 to 10");
  CHECK(refused([](auto& it) { std::swap(it.kept[0], it.kept[2]); }).find("wanted i32") !=
        std::string::npos);
  CHECK(refused([](auto& it) { it.kept.pop_back(); }).find("wanted 3 kept values") !=
        std::string::npos);

  Journey of_spans(piece_of_twelve("t5"));
  const auto refused_span = [&](std::int32_t first, std::int32_t end) {
    auto message = of_spans.honest().activation(0);
    const auto spans = message.value.kept[0].numbers<std::int32_t>();
    spans[2] = first, spans[3] = end;
    return of_spans.refused(message, device_player(0));
  };
  CHECK(refused_span(2, 5).empty());
  CHECK(refused_span(3, 2) ==
        "activation: found a span from 3 to 2 in the input of stage 0, kept value span, wanted an "
        "end that is not before the first");
  CHECK(refused_span(0, 8) ==
        "activation: found 8 in the input of stage 0, kept value span, wanted 0 to 7");
}

TEST_CASE("invalid tokens, groups and norms reach no player", "[actors]") {
  Journey journey;
  const auto& honest = journey.honest();
  for (const std::int32_t wild : {-1, 11, 1'000'000'000}) {
    auto tokens = honest.activation(0);
    tokens.value.stream.numbers<std::int32_t>().back() = wild;
    CHECK(journey.refused(tokens, device_player(0)) ==
          "activation: found " + std::to_string(wild) + " in the input of stage 0, wanted 0 to 10");
    auto targets = honest.targets();
    targets.value.numbers<std::int32_t>()[3] = wild;
    CHECK(journey.refused(targets, device_player(3)).find("in targets, wanted 0 to 10") !=
          std::string::npos);
  }
  CHECK(journey.refused(honest.activation(2), device_player(1)) ==
        "activation: found it for device 1, which does not hold stage 2");
  CHECK_FALSE(journey.refused(honest.activation(2), device_player(1'000'000)).empty());
  CHECK_FALSE(journey.refused(honest.activation(3), first_optimizer).empty());
  CHECK_FALSE(journey.refused(honest.gradients(0, 0, 0), {PlayerId::Kind::optimizer, 12}).empty());
  CHECK(journey.refused(honest.gradients(3, 1, 0), first_optimizer) ==
        "step_gradients: found gradients from holder 0 of stage 1, which gives none to optimizer "
        "0");

  const auto with = [&](auto change) {
    auto changed = honest.gradients(0, 0, 1);
    change(*changed.gradients);
    return journey.refused(changed, first_optimizer);
  };
  constexpr int most = std::numeric_limits<int>::max();
  CHECK(with([](auto&) {}).empty());
  CHECK_FALSE(with([](auto& it) { it.sums[0].first_group = -1; }).empty());
  CHECK_FALSE(with([&](auto& it) { it.sums[0].first_group = most; }).empty());
  CHECK_FALSE(with([&](auto& it) { it.sums[0].groups = most; }).empty());
  CHECK_FALSE(with([](auto& it) { it.sums.push_back(it.sums[0]); }).empty());
  CHECK_FALSE(with([](auto& it) { it.statistics.resize(100); }).empty());
  for (const double share : {0.0, -1.0, 1.5, std::numeric_limits<double>::quiet_NaN()})
    CHECK_FALSE(with([&](auto& it) { it.rate_share = share; }).empty());

  auto late = honest.weights(0, 3);
  late.worked.end -= std::chrono::seconds(1);
  CHECK(journey.refused(late, device_player(0)).find("times") != std::string::npos);
  CHECK_FALSE(journey.refused(honest.weights(0, std::int64_t{1} << 50), device_player(0)).empty());

  CHECK(journey.refused(honest.norms(5), first_optimizer).empty());
  auto norms = honest.norms(5);
  norms.squares[0].blocks[0] = std::numeric_limits<double>::infinity();
  CHECK(journey.refused(norms, first_optimizer).find("as the square of a norm") !=
        std::string::npos);
  norms = honest.norms(5);
  norms.squares[0].blocks[0] = -1;
  CHECK_FALSE(journey.refused(norms, first_optimizer).empty());
  norms = honest.norms(5);
  norms.squares[0].name = "nobody's";
  CHECK_FALSE(journey.refused(norms, first_optimizer).empty());
  Journey each_clips_alone(late_piece("mlp"));
  CHECK(each_clips_alone.refused(each_clips_alone.honest().norms(1), first_optimizer)
            .find("with which optimizer 0 does not clip") != std::string::npos);
}
