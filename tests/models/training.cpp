#include "training.h"

#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "catch.h"
#include "config/model_kinds.h"
#include "config/toml/toml.h"
#include "core/random.h"
#include "models/description/model_kind.h"
#include "models/description/option.h"
#include "tests/own_unet.h"

namespace troupe::models {

Model build(std::string_view kind, const Value& options, Cuts cuts) {
  const auto* found = config::find_model_kind(kind);
  REQUIRE(found);
  const auto table = complete(found->options(), options);
  REQUIRE(table.ok());
  auto model = found->build(*table, cuts);
  REQUIRE(model.ok());
  return std::move(*model);
}

Model described(const std::string& text, const Value& options, Cuts cuts) {
  const auto tree = config::parse_toml(text);
  REQUIRE(tree.ok());
  auto kind = ModelKind::read(*tree);
  REQUIRE(std::holds_alternative<ModelKind>(kind));
  const auto& read = std::get<ModelKind>(kind);
  const auto table = complete(read.options(), options);
  REQUIRE(table.ok());
  auto model = read.expand(*table, cuts);
  if (auto* fault = std::get_if<Fault>(&model)) FAIL(error_of(*fault).text);
  return std::move(std::get<Model>(model));
}

namespace {

Value table(std::initializer_list<std::pair<const char*, Value>> entries) {
  Value made;
  for (const auto& [key, value] : entries) made.set(key, value);
  return made;
}

/// `dropout` is a factor on the dropout rates.
std::vector<Model> models_with(double dropout, Cuts cuts) {
  std::vector<Model> models;
  const auto build = [cuts](std::string_view kind, const Value& options) {
    return models::build(kind, options, cuts);
  };
  const auto described = [cuts](std::string_view text, const Value& options) {
    return models::described(std::string(text), options, cuts);
  };
  models.push_back(
      build("mlp", table({{"dims", Value::List{6, 8, 7, 9, 5}}, {"dropout", 0.2 * dropout}})));
  models.push_back(build("gpt2", table({{"vocab", 13},
                                        {"context", 9},
                                        {"width", 8},
                                        {"layers", 3},
                                        {"heads", 2},
                                        {"dropout", 0.1 * dropout}})));
  models.push_back(build("llama", table({{"vocab", 13},
                                         {"context", 7},
                                         {"width", 16},
                                         {"layers", 3},
                                         {"heads", 4},
                                         {"kv_heads", 2},
                                         {"ffn", 20},
                                         {"tied", true},
                                         {"dropout", 0.1 * dropout}})));
  models.push_back(build("vit", table({{"image", 6},
                                       {"patch", 3},
                                       {"channels", 2},
                                       {"width", 8},
                                       {"layers", 3},
                                       {"heads", 2},
                                       {"classes", 5},
                                       {"dropout", 0.1 * dropout}})));
  models.push_back(build("resnet", table({{"channels", 2},
                                          {"widths", Value::List{4, 6}},
                                          {"blocks", Value::List{1, 2}},
                                          {"classes", 5},
                                          {"dropout", 0.2 * dropout}})));
  const auto of_tokens = [&](std::initializer_list<std::pair<const char*, Value>> more) {
    Value options = table(more);
    for (const auto& [key, value] : {std::pair{"vocab", 13}, {"context", 7}, {"layers", 3}})
      options.set(key, value);
    options.set("dropout", 0.1 * dropout);
    return options;
  };
  models.push_back(build("llama", of_tokens({{"width", 8},
                                             {"heads", 4},
                                             {"kv_heads", 2},
                                             {"ffn", 12},
                                             {"head_width", 6},
                                             {"window", 3},
                                             {"qkv_bias", true},
                                             {"qk_norm", true},
                                             {"rope_type", "llama3"},
                                             {"rope_factor", 4.0},
                                             {"rope_context", 16}})));
  models.push_back(build("gpt_neox", of_tokens({{"width", 16}, {"heads", 2}, {"rotary", 0.5}})));
  models.push_back(build("gptj", of_tokens({{"width", 16}, {"heads", 2}, {"rotary", 4}})));
  models.push_back(build("gemma", of_tokens({{"width", 8},
                                             {"heads", 4},
                                             {"kv_heads", 2},
                                             {"ffn", 12},
                                             {"head_width", 6},
                                             {"window", 3},
                                             {"query_scale", 5},
                                             {"post_norms", true},
                                             {"score_cap", 1.5},
                                             {"logit_cap", 2.5}})));
  models.push_back(build("mixtral", of_tokens({{"width", 8},
                                               {"heads", 2},
                                               {"ffn", 12},
                                               {"experts", 4},
                                               {"balance", 0.1},
                                               {"router_z", 0.01}})));
  models.push_back(build("qwen3_moe", of_tokens({{"width", 8},
                                                 {"heads", 2},
                                                 {"ffn", 12},
                                                 {"experts", 9},
                                                 {"experts_per_token", 3},
                                                 {"expert_ffn", 6},
                                                 {"sparse_step", 2},
                                                 {"renormalise", false}})));
  models.push_back(build("bert", table({{"vocab", 13},
                                        {"context", 9},
                                        {"length", 7},
                                        {"width", 8},
                                        {"layers", 3},
                                        {"heads", 2},
                                        {"dropout", 0.1 * dropout}})));
  for (const bool is_new : {false, true})
    models.push_back(build("t5", table({{"vocab", 13},
                                        {"source", 9},
                                        {"target", 5},
                                        {"width", 8},
                                        {"layers", 2},
                                        {"decoder_layers", 3},
                                        {"heads", 2},
                                        {"head_width", 6},
                                        {"ffn", 12},
                                        {"gated", is_new},
                                        {"tied", !is_new},
                                        {"dropout", 0.1 * dropout}})));
  models.push_back(
      described(tests::own_unet, table({{"size", 8}, {"width", 3}, {"dropout", 0.2 * dropout}})));
  models.push_back(described(tests::own_braid, table({{"dropout", 0.2 * dropout}})));
  models.push_back(described(tests::own_pair, table({{"dropout", 0.2 * dropout}})));
  models.push_back(
      described(tests::own_segmenter,
                table({{"size", 8}, {"width", 3}, {"groups", 6}, {"dropout", 0.2 * dropout}})));
  models.push_back(build("gpt2", of_tokens({{"width", 8}, {"heads", 2}, {"apart", true}})));
  models.push_back(build("bert", table({{"vocab", 13},
                                        {"context", 9},
                                        {"width", 8},
                                        {"layers", 3},
                                        {"heads", 2},
                                        {"pairs", true},
                                        {"dropout", 0.1 * dropout}})));
  models.push_back(described(tests::own_gauge, table({{"dropout", 0.2 * dropout}})));
  return models;
}

}  // namespace

std::vector<Model> small_models(Cuts cuts) { return models_with(1, cuts); }
std::vector<Model> small_models_without_dropout() { return models_with(0, Cuts::layers); }

Batch made_batch(Stream& stream, const Model& model, std::int64_t samples, std::uint64_t seed) {
  std::uint32_t drawn = 0;
  const auto word = [&] { return RandomKey{.seed = seed}.words(drawn++)[0]; };
  const auto with_samples = [&](const Shape& form) {
    Shape shape{samples};
    for (const auto size : form) shape.append(size == 0 ? 5 : size);
    return shape;
  };
  const auto fill = [&](Tensor& tensor, std::int64_t below) {
    for (std::int64_t i = 0; i < tensor.count(); ++i) {
      if (tensor.dtype() == DType::i32)
        tensor.data<std::int32_t>()[i] =
            static_cast<std::int32_t>(word() % static_cast<std::uint32_t>(below));
      else
        tensor.f32()[i] = 2 * uniform(word()) - 1;
    }
  };
  auto& memory = stream.host_memory();
  Batch batch{Tensor::make(memory, with_samples(model.sample.input), model.sample.input_type),
              Tensor::make(memory, with_samples(model.sample.target), model.sample.target_type)};
  fill(batch.input, model.sample.bounds.below);
  if (model.sample.target_type == DType::i32) fill(batch.target, model.classes);
  // Every eighth number, about, is no target.
  for (std::int64_t i = 0; model.sample.target_type == DType::f32 && i < batch.target.count(); ++i)
    batch.target.f32()[i] =
        word() % 8 == 0 ? std::numeric_limits<float>::quiet_NaN() : uniform(word());
  for (std::size_t i = 0; i < model.sample.more.size(); ++i) {
    const auto& form = model.sample.more[i];
    fill(batch.more.emplace_back(Tensor::make(memory, with_samples(form.shape), form.type)),
         model.kept[i].bounds.below);
    if (!model.kept[i].bounds.are_spans) continue;
    auto* const spans = batch.more.back().data<std::int32_t>();
    for (std::int64_t j = 0; j < batch.more.back().count(); j += 2)
      if (spans[j] > spans[j + 1]) std::swap(spans[j], spans[j + 1]);
  }
  return batch;
}

Bundle Batch::inputs(std::int64_t first, std::int64_t count) const {
  Bundle bundle = input.slice(first, count);
  for (const auto& tensor : more) bundle.kept.push_back(tensor.slice(first, count));
  return bundle;
}

namespace {

std::vector<UnitRange> ranges(const Model& model, const std::vector<int>& cuts) {
  std::vector<UnitRange> found;
  int first = 0;
  for (const int cut : cuts) found.push_back({std::exchange(first, cut), cut});
  found.push_back({first, static_cast<int>(model.units.size())});
  return found;
}

TargetCount count_of(const Tensor& targets, std::optional<std::int32_t> ignore) {
  TargetCount count{targets.count(), targets.count()};
  if (targets.dtype() == DType::f32)
    count.counted -= std::ranges::count_if(targets.numbers<float>(),
                                           [](float target) { return std::isnan(target); });
  else if (ignore)
    count.counted -= std::ranges::count(targets.numbers<std::int32_t>(), *ignore);
  return count;
}

Stream stream_of(MemoryPool& memory, const Way& way) {
  return way.device ? Stream(memory, *way.device) : Stream(memory, way.threads);
}

}  // namespace

Pipeline::Pipeline(const Recipe& recipe, const Way& way)
    : memory_(way.memory()), stream_(stream_of(memory_, way)), recipe_(recipe), way_(way) {
  const auto units = ranges(recipe.model, way.cuts);
  const StageOptions options{
      .precision = recipe.precision, .keep = way.keep, .seed = 7, .short_rows = way.short_rows};
  for (const auto& range : units) {
    const auto& stage = stages_.emplace_back(recipe.model, range, options);
    optimizers_.emplace_back(recipe.optimizer, stage.parameters(), stage.buffers(),
                             recipe.precision, Lateness(), recipe.loss_scaling,
                             way.short_rows > 0 ? Graphs::of_steps : Graphs::none);
  }
  shared_ = shared_parameters(recipe.model, units);
}

void Pipeline::start(std::uint64_t seed) {
  weights_.clear();
  for (auto& optimizer : optimizers_) weights_.push_back(optimizer.initial(stream_, seed));
}

void Pipeline::start_from(const std::vector<NamedTensor>& tensors) {
  weights_.clear();
  for (auto& optimizer : optimizers_) {
    auto weights = optimizer.from(stream_, tensors, 0);
    REQUIRE(weights.ok());
    weights_.push_back(std::move(*weights));
  }
}

void Pipeline::backward(int m) {
  Bundle dy;
  for (std::size_t i = stages_.size(); i-- > 0;) {
    auto& stage = stages_[i];
    if (way_.keep == Keep::input) stage.recompute(stream_, m, *weights_[i]);
    switch (way_.backward) {
      case Way::Backward::whole:
        dy = stage.backward(stream_, m, *weights_[i], std::move(dy));
        break;
      case Way::Backward::in_halves:
        dy = stage.backward_input(stream_, m, *weights_[i], std::move(dy));
        break;
    }
  }
}

double Pipeline::run_passes(const Batch& batch) {
  const auto samples = batch.input.shape()[0] / recipe_.micro_batches;
  const auto step = weights_[0]->version;
  double loss = 0;
  std::int64_t counted = 0;
  for (int m = 0; m < recipe_.micro_batches; ++m) {
    Bundle x = batch.inputs(m * samples, samples);
    const auto targets = count_of(batch.target.slice(m * samples, samples), recipe_.model.ignore);
    counted += targets.counted;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const MicroBatch id{
          .step = step, .index = m, .first_sample = m * samples, .targets = targets};
      const auto target =
          stages_[i].is_last() ? batch.target.slice(m * samples, samples) : Tensor();
      x = stages_[i].forward(stream_, id, *weights_[i], std::move(x), target);
    }
    const Tensor losses = stream_.to_host(std::move(x.stream));
    stream_.wait();
    loss += Losses{losses}.sum();
  }
  for (int m = 0; m < recipe_.micro_batches; ++m) backward(m);
  if (way_.backward == Way::Backward::in_halves)
    for (int m = 0; m < recipe_.micro_batches; ++m)
      for (std::size_t i = 0; i < stages_.size(); ++i)
        stages_[i].backward_weight(stream_, m, *weights_[i]);
  return counted == 0 ? 0 : loss / static_cast<double>(counted);
}

std::vector<StageGradients> Pipeline::gather() {
  std::vector<StageGradients> gradients;
  for (auto& stage : stages_) gradients.push_back(join(stream_, {stage.take_gradients()}));
  for (const auto& [name, users] : shared_) {
    const auto owner = static_cast<std::size_t>(users[0]);
    const auto for_uses = [&](int user, auto body) {
      const auto& parameters = stages_[static_cast<std::size_t>(user)].parameters();
      for (std::size_t slot = 0; slot < parameters.size(); ++slot)
        if (parameters[slot].name == name)
          body(gradients[static_cast<std::size_t>(user)].slots[slot]);
    };
    for (std::size_t i = 1; i < users.size(); ++i)
      for_uses(users[i], [&](Tensor& use) {
        optimizers_[owner].add_use(stream_, gradients[owner], name, std::exchange(use, {}));
      });
    // All stages get the sum, so that all compute the same next version.
    const Tensor sum = optimizers_[owner].gradient(stream_, gradients[owner], name);
    for (std::size_t i = 1; i < users.size() && !sum.empty(); ++i) {
      Tensor copy = stream_.make(sum.shape(), sum.dtype());
      stream_.copy(sum, copy);
      for_uses(users[i], [&](Tensor& use) { use = std::exchange(copy, {}); });
    }
  }
  return gradients;
}

StepResult Pipeline::step(const Batch& batch) {
  for (auto& stage : stages_)
    stage.begin_step(Share::whole(recipe_.micro_batches, recipe_.groups), batch.target.count());
  const double loss = run_passes(batch);
  auto gradients = gather();
  std::vector<SquaredNorm> squares;
  for (std::size_t i = 0; i < stages_.size(); ++i)
    for (auto& square : optimizers_[i].squared_norms(stream_, gradients[i], loss_scale()))
      squares.push_back(std::move(square));
  const double norm = global_norm(squares);
  for (std::size_t i = 0; i < stages_.size(); ++i)
    weights_[i] = optimizers_[i].step(stream_, weights_[i], std::move(gradients[i]), norm);
  stream_.wait();
  return {loss, norm};
}

std::vector<NamedTensor> Pipeline::weights() const {
  std::vector<NamedTensor> all;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < stages_.size(); ++i)
    for (auto& named : optimizers_[i].named(*weights_[i]))
      if (seen.insert(named.name).second) all.push_back(std::move(named));
  return all;
}

Digest Pipeline::digest() {
  std::map<std::string, Tensor> all;  // Sorted, because a stage's buffers follow its parameters.
  for (const auto& [name, tensor] : weights()) all.emplace(name, stream_.to_host(tensor));
  for (const auto& optimizer : optimizers_)
    for (const auto& [name, tensor] : optimizer.state()) all.emplace(name, stream_.to_host(tensor));
  stream_.wait();
  Digester digester;
  for (const auto& [name, tensor] : all) digester.add(tensor.host_bytes());
  return digester.finish();
}

}  // namespace troupe::models
