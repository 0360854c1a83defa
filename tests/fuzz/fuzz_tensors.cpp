#include <algorithm>
#include <caf/all.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/caf_shim.h"
#include "actors/checkpoints.h"
#include "actors/exchange.h"
#include "actors/honest_tensors.h"
#include "actors/nodes/placement.h"
#include "actors/nodes/wire_message.h"
#include "actors/play/held_stage.h"
#include "actors/rounds.h"
#include "config/model_kinds.h"
#include "models/description/option.h"
#include "models/train/shared_parameters.h"
#include "storage/data/micro_batches.h"
#include "transport/wire/msgpack.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

using Kind = PlayerId::Kind;

/// Data of the shape that a model takes. Nobody reads it.
class NoSamples final : public storage::Dataset {
 public:
  explicit NoSamples(const models::Model& model) : classes_(model.classes) {
    for (const auto size : model.sample.input) shape_.input.append(size == 0 ? 4 : size);
    shape_.input_type = model.sample.input_type;
    shape_.target = model.sample.target;
    for (const auto& more : model.sample.more)
      shape_.more.push_back({more.name, more.shape, more.type});
  }
  std::int64_t count() const override { return 8; }
  const storage::SampleShape& shape() const override { return shape_; }
  std::int64_t classes() const override { return classes_; }
  std::string description() const override { return "no samples"; }
  Status read(const storage::Place&, const storage::SampleSpans&) const override {
    return Error{"there are none"};
  }

 private:
  std::int64_t classes_;
  storage::SampleShape shape_;
};

models::Model make_model(const std::string& kind_name,
                         std::initializer_list<std::pair<const char*, Value>> entries) {
  Value options;
  for (const auto& [key, value] : entries) options.set(key, value);
  const auto* kind = config::find_model_kind(kind_name);
  return *kind->build(*models::complete(kind->options(), options));
}

/// A run of two stages, and what its players compute with tensors that came from others.
class Run {
 public:
  Run(models::Model model, RoundShape shape, models::StalenessOptions staleness)
      : model_(std::move(model)),
        rounds_(*Rounds::make(shape)),
        data_(model_),
        batches_(data_, {storage::SampleOrder::Kind::sequential, 0, data_.count()}, 8, 2),
        stream_(memory_) {
    spec_.model = &model_;
    const int units = static_cast<int>(model_.units.size());
    spec_.stages = {{0, units / 2}, {units / 2, units}};
    spec_.optimizer = models::OptimizerConfig::of(models::OptimizerConfig::Kind::adamw);
    spec_.staleness = staleness;
    spec_.delays = rounds_.delays();
    spec_.keep = rounds_.keep();
    spec_.round = [this](std::int64_t first, std::int64_t left) { return rounds_.at(first, left); };
    spec_.evaluation = evaluation_round(*rounds_.of_one_step(), 4);
    spec_.steps = 100;
    spec_.micro = 2;
    spec_.samples_in_step = 8;
    spec_.batches = &batches_;
    cut_stages(spec_, Exchange::all_to_all);
    const auto usual = spec_.round(0, 1);
    spec_.executors.resize(static_cast<std::size_t>(usual->devices() * usual->replicas));
    placement_.processes = 2;
    placement_.stages.resize(spec_.executors.size());
    placement_.optimizers.resize(static_cast<std::size_t>(optimizers_of(spec_)));
    placement_.inputs.resize(static_cast<std::size_t>(usual->replicas));
    placement_.targets = placement_.inputs;
    bounds_ = RunBounds::of(spec_);
    honest_.emplace(spec_, *bounds_.tensors, memory_);
  }

  const HonestTensors& honest() const { return *honest_; }
  const RunSpec& spec() const { return spec_; }
  const TensorBounds& tensors() const { return *bounds_.tensors; }
  MemoryPool& memory() { return memory_; }
  Sender from(PlayerId to) const { return {0, to, placement_, bounds_}; }

  // Each take() does what a player does with an accepted message.

  void take(const Activation& in) { pass(in.stage, in.value, honest_->targets().value, {}, {}); }
  void take(const Targets& in) {
    pass(last_stage, honest_->activation(last_stage).value, in.value, {}, {});
  }
  void take(const Gradient& in) {
    pass(in.stage, honest_->activation(in.stage).value, {}, in.value, {});
  }
  void take(const LoanFor& in) {
    pass(in.stage, honest_->activation(in.stage).value, honest_->targets().value, {}, in.loan);
  }
  void take(const StepGradients& in, int optimizer) {
    const auto holders = static_cast<int>(holders_of(*spec_.round(0, 1), in.stage).size());
    std::vector<std::shared_ptr<models::GradientShare>> given;
    for (int holder = 0; holder < holders; ++holder)
      given.push_back(holder == in.holder
                          ? in.gradients
                          : honest_->gradients(optimizer, in.stage, holder).gradients);
    std::vector<const models::GradientShare*> shares;
    for (const auto& share : given) shares.push_back(share.get());
    if (!fit_together(shares)) return;
    std::vector<models::GradientShare> all;
    for (const auto& share : given) all.push_back(*share);
    auto gradients = models::join(stream_, std::move(all));
    if (in.stage != place_of(spec_, optimizer).stage) return;
    auto stepping = make_optimizer(optimizer);
    const auto weights = stepping.initial(stream_, 1);
    const auto norm = models::global_norm(stepping.squared_norms(stream_, gradients));
    (void)stepping.penalised_squares(stream_, gradients);
    if (std::isfinite(norm)) (void)stepping.step(stream_, weights, std::move(gradients), norm);
  }
  void take(const NewWeights& in) {
    auto held = make_held(in.stage);
    const auto sections = spec_.sections[static_cast<std::size_t>(in.stage)].size();
    for (int section = 0; section < static_cast<int>(sections); ++section) {
      auto part = section == in.section
                      ? in
                      : honest_->weights(optimizer_of(spec_, {in.stage, section}), 3);
      if (!held.expects(part)) return;
      held.published[static_cast<std::size_t>(section)] = {part.version, part.worked};
    }
    adopt(held);
    run(held, honest_->activation(in.stage).value, honest_->targets().value, {}, {});
  }
  void take(const Snapshot& in) {
    auto optimizer = make_optimizer(in.optimizer);
    auto first = optimizer.begin_from(stream_, in.weights, in.step, in.loss_scale);
    if (!first) std::abort();  // may() accepts only states that an optimizer can begin with.
    optimizer.go_on(stream_, *first, first->all);
    if (!optimizer.restore(stream_, in.moments, in.step)) std::abort();
    std::vector<Snapshot> parts{in};
    for (int other = 0; other < optimizers_of(spec_); ++other)
      if (other != in.optimizer) parts.push_back(honest_->state(other, in.step));
    (void)checkpoint_content(spec_, in.step, std::move(parts), memory_);
  }

  static constexpr int last_stage = 1;

 private:
  models::Optimizer make_optimizer(int optimizer) const {
    const auto [stage, number] = place_of(spec_, optimizer);
    const auto index = static_cast<std::size_t>(stage);
    const models::Stage passes(model_, spec_.stages[index], {});
    const auto& section = spec_.sections[index][static_cast<std::size_t>(number)];
    return {spec_.optimizer,
            models::parameters_of(section, passes.parameters()),
            section.has_buffers ? passes.buffers() : std::vector<models::Buffer>(),
            spec_.precision,
            {.staleness = spec_.staleness, .delay = spec_.delays[index], .borrowed = {}}};
  }
  HeldStage make_held(int stage) const {
    const auto holder = holders_of(*spec_.round(0, 1), stage).front();
    for (auto& held : stages_held(spec_, holder.replica, holder.device))
      if (held.number == stage) return std::move(held);
    std::abort();
  }
  void adopt(HeldStage& held) {
    const auto& sections = spec_.sections[static_cast<std::size_t>(held.number)];
    auto version =
        models::join(stream_, held.stage->passes().parameters(), sections, held.take_published());
    held.stage->adopt(held.stage->packed(stream_, std::move(version)));
  }
  /// One micro-batch through a stage with honest weights.
  void pass(int stage, const models::Bundle& input, const Tensor& targets,
            const models::Bundle& gradient, const models::Loan& loan) {
    auto held = make_held(stage);
    for (std::size_t i = 0; i < held.published.size(); ++i) {
      const auto part = honest_->weights(optimizer_of(spec_, {stage, static_cast<int>(i)}), 3);
      held.published[i] = {part.version, part.worked};
    }
    adopt(held);
    run(held, input, targets, gradient, loan);
  }
  void run(HeldStage& held, const models::Bundle& input, const Tensor& targets,
           models::Bundle gradient, const models::Loan& given) {
    auto& stage = *held.stage;
    std::vector<models::Loan> loans;
    for (const auto& name : held.borrowed)
      loans.push_back(given.name == name ? given : models::Loan{name, 1, shared_value(name)});
    const bool is_last = stage.passes().is_last();
    if (!is_last && gradient.empty()) gradient = honest_->gradient(held.number).value;
    (void)stage.evaluate(stream_, input, is_last ? targets : Tensor(), loans);
    stage.begin_round({.delays = {0},
                       .step_every = 1,
                       .share = models::Share::whole(1, 1),
                       .targets_in_step = 8});
    (void)stage.forward(stream_, {0, 0, 0}, input, is_last ? targets : Tensor(), loans);
    (void)stage.backward(stream_, 0, std::move(gradient));
    (void)stage.take_gradients(stream_);
  }
  Tensor shared_value(const std::string& name) const {
    for (const auto& unit : model_.units)
      for (const auto& parameter : unit.layer->parameters())
        if (parameter.name == name) return honest_->tensor({parameter.shape, parameter.type});
    return {};
  }

  MemoryPool memory_;
  models::Model model_;
  Rounds rounds_;
  NoSamples data_;
  storage::MicroBatches batches_;
  Stream stream_;
  RunSpec spec_;
  Placement placement_;
  RunBounds bounds_;
  std::optional<HonestTensors> honest_;
};

RoundShape shape_of(const char* schedule, int replicas) {
  RoundShape shape;
  shape.schedule = schedule;
  shape.stages = 2;
  shape.replicas = replicas;
  shape.micro_batches = shape.groups = 4;
  return shape;
}

std::vector<std::unique_ptr<Run>> make_runs() {
  std::vector<std::unique_ptr<Run>> runs;
  runs.push_back(std::make_unique<Run>(
      make_model("gpt2", {{"vocab", 7}, {"context", 3}, {"width", 4}, {"layers", 2}, {"heads", 2}}),
      shape_of("1f1b", 2), models::StalenessOptions{}));
  models::StalenessOptions penalised;
  penalised.gap_penalty = models::StalenessOptions::GapPenalty::elementwise;
  runs.push_back(std::make_unique<Run>(make_model("resnet", {{"channels", 1},
                                                             {"widths", Value::List{2, 2}},
                                                             {"blocks", Value::List{1, 1}},
                                                             {"classes", 3}}),
                                       shape_of("pipedream", 1), penalised));
  return runs;
}

/// Bytes one after another; 0 once there are no more.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}
  int next() {
    if (rest_.empty()) return 0;
    const int first = rest_.front();
    rest_ = rest_.subspan(1);
    return first;
  }
  bool empty() const { return rest_.empty(); }
  std::span<const std::uint8_t> take(std::size_t size) {
    const auto taken = rest_.first(std::min(size, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const std::uint8_t> rest_;
};

Tensor drawn(Bytes& bytes, MemoryPool& memory) {
  constexpr DType types[] = {DType::f32, DType::bf16, DType::f16, DType::f64,
                             DType::i32, DType::i64,  DType::u8,  DType::u16};
  const auto type = types[bytes.next() % 8];
  Shape shape;
  for (int rank = bytes.next() % 5; rank > 0; --rank) shape.append(bytes.next() % 9);
  Tensor tensor = Tensor::make(memory, shape, type);
  std::ranges::fill(tensor.host_bytes(), static_cast<std::byte>(bytes.next()));
  return tensor;
}

/// Three bytes: what is changed, and where; then how.
void change(WireMessage& wire_message, Bytes& bytes, MemoryPool& memory) {
  const int what = bytes.next() % 6;
  auto& tensors = wire_message.tensors;
  const auto at = static_cast<std::size_t>(bytes.next());
  if (what == 4) {
    const auto packed = bytes.take(static_cast<std::size_t>(bytes.next()));
    const auto value =
        transport::unpack({reinterpret_cast<const char*>(packed.data()), packed.size()}, {},
                          std::size_t{1} << 16, "body");
    if (value && value->map())
      for (const auto& entry : *value->map()) wire_message.body.set(entry.key, entry.value);
    return;
  }
  if (what == 5 || tensors.empty()) return tensors.push_back(drawn(bytes, memory));
  auto& tensor = tensors[at % tensors.size()];
  switch (what) {
    case 0:
      tensor = drawn(bytes, memory);
      break;
    case 1:
      tensors.pop_back();
      break;
    case 2:
      std::swap(tensor, tensors.front());
      break;
    default:  // Other numbers.
      if (tensor.bytes() > 0) tensor.host_bytes()[at % tensor.bytes()] ^= std::byte{0xff};
      break;
  }
}

struct Drawn {
  WireMessage wire_message;
  PlayerId to;
};

/// Two bytes: the type and the speaker.
std::optional<Drawn> draw_message(Run& run, Bytes& bytes) {
  const auto& honest = run.honest();
  const int type = bytes.next() % 7, who = bytes.next();
  const int stage = who % 2, optimizer = who % optimizers_of(run.spec());
  const auto holder = holders_of(*run.spec().round(0, 1), stage).front();
  const PlayerId player{Kind::stage,
                        holder.replica * run.spec().evaluation->devices() + holder.device};
  auto& memory = run.memory();
  switch (type) {
    case 0:
      return Drawn{to_wire_message(honest.activation(stage), memory), player};
    case 1:
      if (stage != Run::last_stage) return {};
      return Drawn{to_wire_message(honest.targets(), memory), player};
    case 2:
      if (stage == Run::last_stage) return {};
      return Drawn{to_wire_message(honest.gradient(stage), memory), player};
    case 3: {
      const auto shared = models::shared_parameters(*run.spec().model, run.spec().stages);
      if (shared.empty() || stage != Run::last_stage) return {};
      LoanFor loan{{}, stage, {shared[0].name, 1, {}}};
      for (const auto& parameter : run.spec().model->units[0].layer->parameters())
        if (parameter.name == shared[0].name)
          loan.loan.value = honest.tensor({parameter.shape, parameter.type});
      return Drawn{to_wire_message(loan, memory), player};
    }
    case 4: {
      const auto& from = run.tensors().gradients_for(optimizer);
      const int giver = who & 0x80 ? from.rbegin()->first : from.begin()->first;
      const auto holders = holders_of(*run.spec().round(0, 1), giver).size();
      return Drawn{
          to_wire_message(honest.gradients(optimizer, giver, who / 16 % static_cast<int>(holders)),
                          memory),
          {Kind::optimizer, optimizer}};
    }
    case 5: {
      const auto told = honest.weights(optimizer, who & 0x80 ? 3 : 0);
      const auto there = holders_of(*run.spec().round(0, 1), told.stage).front();
      return Drawn{to_wire_message(told, memory),
                   {Kind::stage, there.replica * run.spec().evaluation->devices() + there.device}};
    }
    default:
      return Drawn{to_wire_message(honest.state(optimizer, who & 0x80 ? 3 : 0), memory),
                   the_supervisor};
  }
}

}  // namespace

/// A message of a run whose tensors are changed: it is refused with words, or players can use it.
/// The input: the run, the type, the speaker, then changes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Never destroyed: an actor system does not survive the destructors of static objects.
  static auto& runs = *new std::vector<std::unique_ptr<Run>>(make_runs());
  static auto& config = *new caf_shim::Config(1);
  static auto& system = *new caf::actor_system(config);
  Bytes bytes(data, size);
  auto& run = *runs[static_cast<std::size_t>(bytes.next()) % runs.size()];
  auto message = draw_message(run, bytes);
  if (!message) return 0;
  while (!bytes.empty()) change(message->wire_message, bytes, run.memory());
  caf::scoped_actor self(system);
  const PlayerId to = message->to;
  const auto told = deliver(std::move(message->wire_message), run.from(to), run.spec(),
                            caf::actor_cast<caf::actor>(self));
  if (!told) {
    if (told.error().text.empty()) std::abort();
    return 0;
  }
  self->receive(
      [&](const Activation& in) { run.take(in); }, [&](const Targets& in) { run.take(in); },
      [&](const Gradient& in) { run.take(in); }, [&](const LoanFor& in) { run.take(in); },
      [&](const StepGradients& in) { run.take(in, to.index); },
      [&](const NewWeights& in) { run.take(in); }, [&](const Snapshot& in) { run.take(in); });
  return 0;
}
