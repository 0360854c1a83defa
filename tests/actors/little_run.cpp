#include "little_run.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>

#include "actors/inputs_of.h"
#include "catch.h"
#include "config/model_kinds.h"
#include "config/toml/toml.h"
#include "core/random.h"
#include "models/description/model_kind.h"
#include "models/description/option.h"
#include "models/train/parameter_groups.h"
#include "storage/files/memory_files.h"
#include "tests/own_unet.h"

namespace troupe::actors {
namespace {

Value table(std::initializer_list<std::pair<const char*, Value>> entries) {
  Value made;
  for (const auto& [key, value] : entries) made.set(key, value);
  return made;
}

/// The target that does not count, in models that ignore one.
constexpr std::int32_t ignored = -100;

models::Model of_description(const std::string& text, const Value& options) {
  const auto tree = config::parse_toml(text);
  REQUIRE(tree.ok());
  const auto kind = models::ModelKind::read(*tree);
  REQUIRE(std::holds_alternative<models::ModelKind>(kind));
  const auto& described = std::get<models::ModelKind>(kind);
  const auto complete = models::complete(described.options(), options);
  REQUIRE(complete.ok());
  auto model = described.build(*complete);
  REQUIRE(model.ok());
  return std::move(*model);
}

models::Model build(const std::string& kind, double dropout, bool ignores) {
  const std::map<std::string, Value> options = {
      {"mlp", table({{"dims", Value::List{4, 6, 5, 6, 5, 6, 5, 6, 3}}, {"dropout", dropout}})},
      {"wide", table({{"dims", Value::List{4, 300, 300, 3}}, {"dropout", dropout}})},
      {"gpt2", table({{"vocab", 11},
                      {"context", 5},
                      {"width", 8},
                      {"layers", 8},
                      {"heads", 2},
                      {"dropout", dropout}})},
      {"llama", table({{"vocab", 11},
                       {"context", 5},
                       {"width", 8},
                       {"layers", 8},
                       {"heads", 2},
                       {"kv_heads", 1},
                       {"ffn", 12},
                       {"tied", true},
                       {"dropout", dropout}})},
      {"vit", table({{"image", 4},
                     {"patch", 2},
                     {"channels", 1},
                     {"width", 8},
                     {"layers", 8},
                     {"heads", 2},
                     {"classes", 3},
                     {"dropout", dropout}})},
      {"resnet", table({{"channels", 1},
                        {"widths", Value::List{4, 4}},
                        {"blocks", Value::List{4, 4}},
                        {"classes", 3},
                        {"dropout", dropout}})},
      {"unet", table({{"size", 16}, {"width", 2}, {"levels", 4}, {"dropout", dropout}})},
      {"braid", table({{"depth", 5}, {"dropout", dropout}})},
      {"pair", table({{"depth", 5}, {"dropout", dropout}})},
      {"segmenter",
       table({{"size", 16}, {"width", 2}, {"levels", 4}, {"groups", 4}, {"dropout", dropout}})},
      {"gauge", table({{"depth", 6}, {"dropout", dropout}})},
      {"t5", table({{"vocab", 11},
                    {"source", 7},
                    {"target", 5},
                    {"width", 8},
                    {"layers", 4},
                    {"heads", 2},
                    {"head_width", 4},
                    {"ffn", 12},
                    {"dropout", dropout}})},
  };
  const std::map<std::string, std::string> own = {{"unet", tests::own_unet},
                                                  {"braid", tests::own_braid},
                                                  {"pair", tests::own_pair},
                                                  {"segmenter", tests::own_segmenter},
                                                  {"gauge", tests::own_gauge}};
  if (const auto text = own.find(kind); text != own.end())
    return of_description(text->second, options.at(kind));
  const auto* found = config::find_model_kind(kind == "wide" ? "mlp" : kind);
  REQUIRE(found);
  auto complete = models::complete(found->options(), options.at(kind));
  REQUIRE(complete.ok());
  if (ignores) complete->set("loss", table({{"ignore", ignored}}));
  auto model = found->build(*complete);
  REQUIRE(model.ok());
  return std::move(*model);
}

/// A layer of a unit that fails on demand.
class FaultyLayer final : public models::Layer {
 public:
  FaultyLayer(models::LayerPtr layer, LayerFault fault)
      : layer_(std::move(layer)), fault_(std::move(fault)) {}

  std::vector<models::Parameter> parameters() const override { return layer_->parameters(); }
  std::vector<models::Buffer> buffers() const override { return layer_->buffers(); }
  int saved() const override { return layer_->saved(); }
  Shape output(const Shape& input) const override { return layer_->output(input); }
  models::Work work(const Shape& input) const override { return layer_->work(input); }
  Shape output_with(const Shape& input, models::KeptShapes& kept) const override {
    return layer_->output_with(input, kept);
  }

  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override {
    Tensor y = layer_->forward(in, std::move(x), saved, statistics);
    if (fault_.forward && in.pass.mode == models::Mode::training) fault_.forward(in.pass, y);
    return y;
  }
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override {
    Tensor dx = layer_->backward_input(in, std::move(dy), saved);
    if (fault_.backward) fault_.backward(in.pass, dx);
    return dx;
  }
  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override {
    layer_->backward_weight(in, saved, gradients);
  }

 private:
  models::LayerPtr layer_;
  LayerFault fault_;
};

/// Samples that fit a model, drawn from their number.
class DrawnSamples final : public storage::Dataset {
 public:
  DrawnSamples(const models::Model& model, const Piece& piece)
      : classes_(model.classes), on_read_(piece.on_read), left_out_(piece.left_out) {
    for (const auto size : model.sample.input) shape_.input.append(size == 0 ? 5 : size);
    for (const auto size : model.sample.target) shape_.target.append(size);
    shape_.input_type = model.sample.input_type;
    shape_.target_type = model.sample.target_type;
    bounds_.push_back(model.sample.bounds);
    for (std::size_t i = 0; i < model.sample.more.size(); ++i) {
      const auto& more = model.sample.more[i];
      shape_.more.push_back({more.name, more.shape, more.type});
      bounds_.push_back(model.kept[i].bounds);
    }
  }

  std::int64_t count() const override { return 50; }
  const storage::SampleShape& shape() const override { return shape_; }
  std::int64_t classes() const override { return classes_; }
  std::string description() const override { return "drawn samples"; }

  Status read(const storage::Place& place, const storage::SampleSpans& to) const override {
    const auto index = place.sample;
    const auto target = to.target;
    if (on_read_)
      if (auto good = on_read_(index); !good) return good;
    std::uint32_t drawn = 0;
    const auto word = [&] {
      return RandomKey{.seed = 11, .sample = static_cast<std::uint32_t>(index)}.words(drawn++)[0];
    };
    const auto classes = static_cast<std::uint32_t>(std::max<std::int64_t>(1, classes_));
    for (std::size_t k = 0; k < to.inputs.size(); ++k) {
      const auto below = static_cast<std::uint32_t>(bounds_[k].below);
      const auto type = k == 0 ? shape_.input_type : shape_.more[k - 1].type;
      for (std::size_t at = 0; at < to.inputs[k].size(); at += 4) {
        const auto token = static_cast<std::int32_t>(word() % (below > 0 ? below : classes));
        const float number = 2 * uniform(word()) - 1;
        std::memcpy(&to.inputs[k][at],
                    type == DType::i32 ? static_cast<const void*>(&token) : &number, 4);
      }
      if (bounds_[k].are_spans) order_spans(to.inputs[k]);
    }
    const bool are_numbers = shape_.target_type == DType::f32;
    for (std::size_t at = 0; at < target.size(); at += 4) {
      const auto token = static_cast<std::int32_t>(are_numbers ? 0 : word() % classes);
      const float number = are_numbers ? uniform(word()) : 0;
      std::memcpy(&target[at], are_numbers ? static_cast<const void*>(&number) : &token, 4);
    }
    const float nothing = std::numeric_limits<float>::quiet_NaN();
    const std::int64_t left_out = left_out_ ? left_out_(index) : 0;
    for (std::int64_t i = 0; i < left_out; ++i)
      std::memcpy(&target[static_cast<std::size_t>(i) * 4],
                  are_numbers ? static_cast<const void*>(&nothing) : &ignored, 4);
    return Done{};
  }

 private:
  /// Swaps the numbers of spans that end before their first.
  static void order_spans(std::span<std::byte> bytes) {
    std::vector<std::int32_t> numbers(bytes.size() / sizeof(std::int32_t));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    for (std::size_t i = 0; i + 1 < numbers.size(); i += 2)
      if (numbers[i] > numbers[i + 1]) std::swap(numbers[i], numbers[i + 1]);
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
  }

  std::int64_t classes_;
  std::function<Status(std::int64_t)> on_read_;
  std::function<std::int64_t(std::int64_t)> left_out_;
  storage::SampleShape shape_;
  std::vector<IntegerBounds> bounds_;  // The bounds of the inputs.
};

constexpr auto ledger_path = "runs/little/ledger";

/// A store that saves synchronously, since a test has no other threads.
class ImmediateStore final : public CheckpointStore {
 public:
  explicit ImmediateStore(storage::Files& files) : files_(files) {}

  void save(storage::CheckpointContent content, std::function<void(Status)> done) override {
    const auto saved = storage::save_checkpoint(files_, "checkpoints", content);
    done(saved ? Status(Done{}) : Status(saved.error()));
  }
  Result<StartPoint> load(std::int64_t step, MemoryPool& memory) override {
    return checkpoint_of(files_, "checkpoints", step, memory);
  }
  std::vector<std::int64_t> steps() override {
    std::vector<std::int64_t> steps;
    const auto listed = storage::list_checkpoints(files_, "checkpoints");
    REQUIRE(listed.ok());
    for (const auto& checkpoint : *listed)
      if (checkpoint.state == storage::ListedCheckpoint::State::complete)
        steps.insert(steps.begin(), checkpoint.step);
    return steps;
  }

 private:
  storage::Files& files_;
};

}  // namespace

std::optional<StartPoint> newest_of(CheckpointStore& store, MemoryPool& memory) {
  const auto steps = store.steps();
  if (steps.empty()) return {};
  auto newest = store.load(steps.back(), memory);
  REQUIRE(newest.ok());
  return std::move(*newest);
}

std::optional<StartPoint> newest_checkpoint(storage::Files& files, MemoryPool& memory) {
  ImmediateStore store(files);
  return newest_of(store, memory);
}

namespace {

std::vector<models::UnitRange> even_cuts(int units, int stages) {
  std::vector<models::UnitRange> cuts;
  cuts.reserve(static_cast<std::size_t>(stages));
  for (int stage = 0; stage < stages; ++stage)
    cuts.push_back({stage * units / stages, (stage + 1) * units / stages});
  return cuts;
}

}  // namespace

Piece Piece::of(const std::string& model, const RoundShape& shape) {
  Piece piece;
  piece.model = model;
  piece.shape = shape;
  piece.optimizer = models::OptimizerConfig::of(models::OptimizerConfig::Kind::adamw);
  piece.optimizer.rate.lr = 1e-2;
  piece.optimizer.clip_norm = 1;
  return piece;
}

Piece Piece::in_fp16(std::int64_t of_steps) const {
  Piece other = *this;
  other.loss_scaling = {.initial_power = models::LossScaling::most_power, .growth_interval = 2};
  other.steps = of_steps;
  return other;
}

struct LittleRun::Parts {
  Piece piece;
  models::Model model;
  DrawnSamples data;
  storage::MicroBatches batches;
  storage::MicroBatches other_batches;
  Rounds rounds;
  storage::MemoryFiles files;
  ImmediateStore store{files};
  std::optional<storage::Ledger> ledger;
  std::optional<storage::EvaluationLog> evaluations;
  std::vector<Value> events;

  static Rounds rounds_of(const Piece& piece) {
    auto shape = piece.shape;
    shape.synchronous_steps = piece.staleness.synchronous_steps;
    auto made = Rounds::make(shape);
    if (!made) FAIL(made.error().text);
    return *made;
  }
  kernels::Precision precision() const {
    const bool wants_fp16 = piece.loss_scaling.is_on() && !kernels::is_fp16(piece.precision);
    return wants_fp16 ? kernels::Precision::fp16_chain : piece.precision;
  }
  std::int64_t global() const { return piece.micro * piece.shape.micro_batches; }

  explicit Parts(const Piece& of)
      : piece(of),
        model(build(of.model, of.dropout, of.left_out != nullptr)),
        data(model, of),
        batches(data, {storage::SampleOrder::Kind::shuffled, 5, data.count()},
                of.micro * of.shape.micro_batches, of.micro, model.ignore),
        other_batches(data, {storage::SampleOrder::Kind::shuffled, 6, data.count()},
                      of.micro * of.shape.micro_batches, of.micro, model.ignore),
        rounds(rounds_of(of)) {
    models::freeze(model, piece.optimizer.groups);
    if (piece.cuts.empty())
      piece.cuts = even_cuts(static_cast<int>(model.units.size()), piece.shape.stages);
    if (piece.layer_fault) {
      auto& layer = model.units[static_cast<std::size_t>(piece.layer_fault->unit)].layer;
      layer = std::make_unique<FaultyLayer>(std::move(layer), *piece.layer_fault);
    }
  }
};

LittleRun::LittleRun(const Piece& piece) : parts_(std::make_unique<Parts>(piece)) {}
LittleRun::~LittleRun() = default;

const std::vector<Value>& LittleRun::events() const { return parts_->events; }
storage::MemoryFiles& LittleRun::files() { return parts_->files; }
std::vector<std::int64_t> LittleRun::samples_of(std::int64_t step) const {
  const storage::SampleOrder order(storage::SampleOrder::Kind::shuffled, 5, parts_->data.count());
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < parts_->global(); ++i)
    samples.push_back(order.at(step * parts_->global() + i).sample);
  return samples;
}

const storage::MicroBatches& LittleRun::other_batches() const { return parts_->other_batches; }

std::shared_ptr<RunSpec> LittleRun::spec(const std::function<Executor&()>& make) {
  auto& parts = *parts_;
  const Piece& piece = parts.piece;
  auto spec = std::make_shared<RunSpec>();
  spec->name = "little";
  spec->model = &parts.model;
  spec->stages = piece.cuts;
  spec->keep = parts.rounds.keep();
  spec->optimizer = piece.optimizer;
  spec->delays = parts.rounds.delays();
  spec->staleness = piece.staleness;
  spec->clip = parts.rounds.asynchronous() ? ClipScope::each_stage : ClipScope::all_stages;
  spec->precision = parts.precision();
  spec->loss_scaling = piece.loss_scaling;
  spec->exactness = piece.exactness;
  spec->seed = 3;
  spec->batches = &parts.batches;
  spec->micro = piece.micro;
  spec->samples_in_step = parts.global();
  spec->targets_in_step = parts.global() * parts.data.shape().target.count();
  spec->round = [&parts](std::int64_t first, std::int64_t left) {
    return parts.rounds.at(first, left);
  };
  spec->rounds_ahead = parts.rounds.asynchronous() ? 1 : 2;
  spec->evaluation = evaluation_round(*parts.rounds.of_one_step(), piece.shape.micro_batches);
  if (piece.eval_every) spec->validation = &parts.batches;
  spec->steps = piece.steps;
  spec->measures_staleness = piece.measures_staleness;
  spec->eval_every = piece.eval_every;
  spec->early_stop = piece.early_stop;
  spec->keep_best = piece.keep_best;
  spec->save_every_steps = piece.save_every;
  spec->recipe = Value(Value::Map{});
  spec->model_description = Value(Value::Map{});
  cut_stages(*spec, piece.exchange);
  const int devices = parts.rounds.of_one_step()->devices() * piece.shape.replicas;
  for (int device = 0; device < devices; ++device) spec->executors.push_back(&make());
  spec->reader = &make();
  auto ledger = storage::Ledger::open(
      parts.files, ledger_path,
      {storage::SampleOrder::Kind::shuffled, 5, parts.data.count(), parts.global(), piece.micro});
  REQUIRE(ledger);
  parts.ledger = std::move(*ledger);
  spec->ledger = &*parts.ledger;
  auto evaluations = storage::EvaluationLog::open(parts.files, "runs/little/evaluations");
  REQUIRE(evaluations);
  parts.evaluations = std::move(*evaluations);
  spec->evaluations = &*parts.evaluations;
  spec->checkpoints = &parts.store;
  spec->record = [&parts](const Value& event) { parts.events.push_back(event); };
  return spec;
}

Digest LittleRun::plainly() const {
  const auto& parts = *parts_;
  const auto& piece = parts.piece;
  MemoryPool memory;
  Stream stream(memory);
  models::Stage stage(
      parts.model, {0, static_cast<int>(parts.model.units.size())},
      {.precision = parts.precision(), .keep = models::Keep::everything, .seed = 3});
  models::Optimizer optimizer(piece.optimizer, stage.parameters(), stage.buffers(),
                              parts.precision(), {}, piece.loss_scaling);
  auto weights = optimizer.initial(stream, 3);
  for (std::int64_t step = 0; step < piece.steps; ++step) {
    stage.begin_step(models::Share::whole(piece.shape.micro_batches, piece.shape.groups),
                     parts.global() * parts.data.shape().target.count());
    for (int m = 0; m < piece.shape.micro_batches; ++m) {
      auto batch = parts.batches.read(memory, step, m);
      REQUIRE(batch.ok());
      const models::TargetCount targets{batch->target.count(), batch->counted};
      Tensor target = std::move(batch->target);
      stage.forward(stream, {step, m, m * piece.micro, targets}, *weights,
                    inputs_of(std::move(*batch)), std::move(target));
      stage.backward(stream, m, *weights, {});
    }
    auto gradients = models::join(stream, {stage.take_gradients()});
    const double norm =
        models::global_norm(optimizer.squared_norms(stream, gradients, weights->loss_scale));
    weights = optimizer.step(stream, weights, std::move(gradients), norm);
  }
  return digest_of_weights(optimizer.named(*weights));
}

Digest digest_of_weights(std::vector<NamedTensor> weights) {
  std::ranges::sort(weights, {}, &NamedTensor::name);
  Digester digester;
  for (const auto& [name, tensor] : weights) {
    digester.add(std::as_bytes(std::span(name)));
    digester.add(tensor.host_bytes());
  }
  return digester.finish();
}

std::vector<float> numbers_of_weights(std::vector<NamedTensor> weights) {
  std::ranges::sort(weights, {}, &NamedTensor::name);
  std::vector<float> numbers;
  for (const auto& weight : weights)
    std::ranges::copy(weight.tensor.numbers<float>(), std::back_inserter(numbers));
  return numbers;
}

std::string Played::told(const std::string& type) const {
  std::string lines;
  for (const auto& event : events) {
    if (*event.find("type")->text() != type) continue;
    const auto* text = event.find(type == "stage.stalled" ? "what" : "text");
    const auto* who = event.find("who");
    lines += (who ? *who->text() + ": " : "") + *text->text() + "\n";
  }
  return lines;
}

namespace {

std::set<MemoryPool*> pools_of(Executor& executor) {
  return {&executor.memory(), &executor.host_memory()};
}

}  // namespace

Scene::Scene(LittleRun& run, std::uint64_t seed, const MakeExecutor& make)
    : run_(run), world_(seed) {
  spec_ = run.spec([&]() -> Executor& {
    executors_.push_back(&make(world_));
    return *executors_.back();
  });
  spec_->record = [this, record = spec_->record](const Value& event) {
    record(event);
    if (*event.find("type")->text() != "step") return;
    allocations_.push_back(0);
    for (auto* executor : executors_)
      for (auto* memory : pools_of(*executor))
        allocations_.back() += memory->counters().allocations;
  };
}

Scene::~Scene() {
  world_.thaw();
  if (supervisor_) caf_shim::kill(supervisor_);
  supervisor_ = nullptr;
  world_.settle();
}

void Scene::begin() {
  auto newest = newest_of(*spec_->checkpoints, executors_[0]->host_memory());
  supervisor_ = spawn_supervisor(world_.system(), spec_, std::move(newest).value_or(StartPoint{}),
                                 [this](Outcome ended) { outcome_ = std::move(ended); });
}

void Scene::play(std::uint64_t messages) {
  for (; messages > 0 && step(); --messages) {
  }
}

Played Scene::finish() {
  // Longer than all waits that the run allows.
  constexpr auto patience = std::chrono::hours(1);
  Played played;
  played.ended = world_.run_until([&] { return ended(); }, patience);
  if (!played.ended) caf_shim::kill(supervisor_);
  supervisor_ = nullptr;
  world_.settle();
  if (outcome_) {
    played.weights = digest_of_weights(outcome_->weights);
    played.numbers = numbers_of_weights(outcome_->weights);
    outcome_->weights.clear();
    played.outcome = std::move(*outcome_);
  }
  played.messages = world_.steps();
  played.events = run_.events();
  played.audit = storage::audit(run_.files().read(ledger_path)->text());
  for (const auto* device : spec_->executors)
    played.most_jobs.push_back(World::most_waiting(*device));
  played.most_reads = World::most_waiting(*spec_->reader);
  played.allocations = allocations_;
  for (auto* executor : executors_)
    for (auto* memory : pools_of(*executor)) played.bytes_left += memory->counters().bytes_in_use;
  return played;
}

Played play(const Piece& piece, std::uint64_t seed) {
  LittleRun run(piece);
  Scene scene(run, seed);
  scene.begin();
  return scene.finish();
}

Played play_and_kill(const Piece& piece, std::uint64_t seed, std::uint64_t within,
                     const std::set<std::string>& names) {
  LittleRun run(piece);
  Scene scene(run, seed);
  scene.begin();
  auto& random = scene.world().random();
  scene.play(std::uniform_int_distribution<std::uint64_t>(1, within)(random));
  auto living = scene.world().living();
  std::erase_if(living, [&](const auto& one) { return !names.contains(one.name); });
  if (!living.empty())
    caf_shim::kill(
        living[std::uniform_int_distribution<std::size_t>(0, living.size() - 1)(random)].actor);
  living.clear();
  return scene.finish();
}

}  // namespace troupe::actors
