#include "models/train/optimizer.h"

#include <cmath>

#include "catch.h"
#include "training.h"

using namespace troupe;
using namespace troupe::models;

namespace {

using Kind = OptimizerConfig::Kind;

Tensor tensor(Stream& stream, const Shape& shape, const std::vector<float>& numbers) {
  Tensor made = stream.make(shape);
  REQUIRE(made.count() == static_cast<std::int64_t>(numbers.size()));
  std::copy(numbers.begin(), numbers.end(), made.f32());
  return made;
}

std::vector<float> numbers_of(const Tensor& tensor) {
  return {tensor.f32(), tensor.f32() + tensor.count()};
}

/// One parameter of one number with its optimizer.
class Scalar {
 public:
  explicit Scalar(const OptimizerConfig& config)
      : optimizer_(config, {{.name = "w", .shape = {1}}}, {}, kernels::Precision::fp32) {
    auto weights = optimizer_.from(stream_, {{"w", tensor(stream_, {1}, {1})}}, 0);
    REQUIRE(weights.ok());
    weights_ = *weights;
  }
  float value() const { return weights_->slots[0].value.f32()[0]; }
  /// Steps with this gradient and its own norm.
  float step(float gradient) {
    StageGradients gradients{{tensor(stream_, {1}, {gradient})}, {}};
    const double norm = global_norm(optimizer_.squared_norms(stream_, gradients));
    weights_ = optimizer_.step(stream_, weights_, std::move(gradients), norm);
    return value();
  }

 private:
  MemoryPool memory_;
  Stream stream_{memory_};
  Optimizer optimizer_;
  WeightsPtr weights_;
};

OptimizerConfig config_of(Kind kind, double lr) {
  auto config = OptimizerConfig::of(kind);
  config.rate.lr = lr;
  config.weight_decay = 0;
  return config;
}

}  // namespace

TEST_CASE("sgd subtracts the learning rate times the gradient", "[models]") {
  Scalar w(config_of(Kind::sgd, 0.5));
  CHECK(w.step(1) == 0.5f);
  CHECK(w.step(-2) == 1.5f);
}

TEST_CASE("sgd with momentum takes a plain first step", "[models]") {
  auto config = config_of(Kind::sgd, 0.5);
  config.momentum = 0.5;
  Scalar w(config);
  CHECK(w.step(1) == 0.5f);
  CHECK(w.step(1) == -0.25f);  // v = 0.5 + 1
  CHECK(w.step(0) == -0.625f);
}

TEST_CASE("sgd with Nesterov momentum looks one step ahead", "[models]") {
  auto config = config_of(Kind::sgd, 0.5);
  config.momentum = 0.5;
  config.nesterov = true;
  Scalar w(config);
  CHECK(w.step(1) == 0.25f);    // 1 - 0.5 (1 + 0.5)
  CHECK(w.step(1) == -0.625f);  // v = 1.5; 0.25 - 0.5 (1 + 0.75)
}

TEST_CASE("sgd adds weight decay to the gradient", "[models]") {
  auto config = config_of(Kind::sgd, 0.5);
  config.weight_decay = 0.25;
  Scalar w(config);
  CHECK(w.step(1) == 0.375f);  // 1 - 0.5 (1 + 0.25)
}

TEST_CASE("adam's first step has the size of the learning rate for any gradient", "[models]") {
  for (const float gradient : {1e-3f, 1.0f, 1e3f}) {
    Scalar w(config_of(Kind::adam, 0.125));
    CHECK(w.step(gradient) == Approx(0.875).epsilon(2e-6));
  }
}

TEST_CASE("adamw decays the weight directly and adam decays it through the gradient", "[models]") {
  auto config = config_of(Kind::adamw, 0.125);
  config.weight_decay = 0.5;
  CHECK(Scalar(config).step(1) == Approx(1 - 0.0625 - 0.125).epsilon(2e-6));
  config.kind = Kind::adam;
  CHECK(Scalar(config).step(1) == Approx(0.875).epsilon(2e-6));
}

TEST_CASE("nadamw with a delay of two steps matches the reference", "[models]") {
  auto config = config_of(Kind::nadamw, 0.01);
  config.beta1 = 0.99;
  config.weight_decay = 0.01;
  Scalar w(config);
  const std::vector<double> wanted = {1,
                                      0.9898344032122129,
                                      0.9829353626948569,
                                      0.9769354783701242,
                                      0.9713217562927351,
                                      0.9658586104220461,
                                      0.9604508793970377};
  std::vector<float> seen{w.value()};
  for (std::size_t i = 0; i + 1 < wanted.size(); ++i) {
    // The loss is (w - 0.25)^2 / 2, at the weight of two steps before.
    seen.push_back(w.step(seen[i < 2 ? 0 : i - 2] - 0.25f));
    CHECK(seen.back() == Approx(wanted[i + 1]).epsilon(1e-6));
  }
}

TEST_CASE("clipping scales a gradient above the limit and keeps one below it", "[models]") {
  auto config = config_of(Kind::sgd, 1);
  config.clip_norm = 2;
  CHECK(Scalar(config).step(-4) == Approx(1 + 4 * (2 / (4 + 1e-6))));
  CHECK(Scalar(config).step(-1.5f) == 2.5f);
}

TEST_CASE("muon applies five iterations of its polynomial to the singular values of gradients",
          "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  auto config = config_of(Kind::muon, 0.5);
  config.weight_decay = 0.1;
  const Parameter wide{.name = "w", .shape = {2, 3}, .use = Parameter::Use::matrix};
  Optimizer optimizer(config, {wide}, {}, kernels::Precision::fp32);
  const auto weights =
      *optimizer.from(stream, {{"w", tensor(stream, {2, 3}, {1, 0, 0, 0, 1, 0})}}, 0);
  // The singular values are 3 and 4, along the axes.
  StageGradients gradients{{tensor(stream, {2, 3}, {3, 0, 0, 0, 0, -4})}, {}};
  const auto next = optimizer.step(stream, weights, std::move(gradients), 5);
  const auto iterated = [](double s) {
    for (int i = 0; i < 5; ++i) s = 3.4445 * s - 4.7750 * s * s * s + 2.0315 * s * s * s * s * s;
    return s;
  };
  const auto w = numbers_of(next->slots[0].value);
  const double kept = 1 - 0.5 * 0.1;
  CHECK(w[0] == Approx(kept - 0.5 * iterated(0.6)).epsilon(1e-5));
  CHECK(w[4] == Approx(kept).epsilon(1e-5));
  CHECK(w[5] == Approx(0.5 * iterated(0.8)).epsilon(1e-5));
  CHECK(std::abs(w[1]) < 1e-6f);
  CHECK(std::abs(w[2]) < 1e-6f);
}

TEST_CASE("muon's step does not depend on the weight layout and grows with the outputs",
          "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  const auto step = [&](const Shape& shape, kernels::WeightLayout layout,
                        const std::vector<float>& gradient) {
    Optimizer optimizer(
        config_of(Kind::muon, 1),
        {{.name = "w", .shape = shape, .use = Parameter::Use::matrix, .layout = layout}}, {},
        kernels::Precision::fp32);
    const auto weights =
        *optimizer.from(stream, {{"w", tensor(stream, shape, std::vector<float>(8))}}, 0);
    return numbers_of(optimizer.step(stream, weights, {{tensor(stream, shape, gradient)}, {}}, 1)
                          ->slots[0]
                          .value);
  };
  using kernels::WeightLayout;
  const auto tall = step({4, 2}, WeightLayout::out_in, {1, 2, 3, 4, 5, 6, 7, -8});
  const auto turned = step({2, 4}, WeightLayout::in_out, {1, 3, 5, 7, 2, 4, 6, -8});
  const auto wide = step({2, 4}, WeightLayout::out_in, {1, 3, 5, 7, 2, 4, 6, -8});
  for (std::size_t row = 0; row < 4; ++row)
    for (std::size_t column = 0; column < 2; ++column) {
      CHECK(tall[2 * row + column] == Approx(turned[4 * column + row]).epsilon(1e-5));
      CHECK(tall[2 * row + column] ==
            Approx(std::sqrt(2.0) * wide[4 * column + row]).epsilon(1e-5));
    }
}

TEST_CASE("muon uses adamw for vectors and for matrices at the edge of a model", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  const Optimizer muon(config_of(Kind::muon, 1), {}, {}, kernels::Precision::fp32);
  CHECK(muon.state().empty());
  Optimizer optimizer(config_of(Kind::muon, 0.125),
                      {{.name = "v", .shape = {1}},
                       {.name = "head",
                        .shape = {1, 1},
                        .use = Parameter::Use::matrix,
                        .place = Parameter::Place::edge},
                       {.name = "hidden", .shape = {1, 1}, .use = Parameter::Use::matrix}},
                      {}, kernels::Precision::fp32);
  auto weights = optimizer.initial(stream, 1);
  const Tensor one = tensor(stream, {1}, {1});
  weights = optimizer.step(stream, weights,
                           {{one, one.reshaped({1, 1}), tensor(stream, {1, 1}, {1})}, {}}, 1);
  std::vector<std::string> names;
  for (const auto& [name, moment] : optimizer.state()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"v.m", "v.v", "head.m", "head.v", "hidden.momentum"});
  CHECK(weights->slots[0].value.f32()[0] == Approx(-0.125));
  CHECK(weights->slots[1].value.f32()[0] == Approx(-0.125));
}

TEST_CASE("two uses of a parameter in a stage share one value and one step", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  Optimizer optimizer(config_of(Kind::sgd, 1),
                      {{.name = "t", .shape = {1}}, {.name = "t", .shape = {1}}}, {},
                      kernels::Precision::fp32);
  const auto weights = *optimizer.from(stream, {{"t", tensor(stream, {1}, {10})}}, 0);
  StageGradients gradients{{tensor(stream, {1}, {1}), tensor(stream, {1}, {2})}, {}};
  const auto squares = optimizer.squared_norms(stream, gradients);
  REQUIRE(squares.size() == 1);
  CHECK(squares[0].blocks == std::vector<double>{9});
  const auto next = optimizer.step(stream, weights, std::move(gradients), 3);
  CHECK(next->version == 1);
  CHECK(next->slots[0].value.f32()[0] == 7);
  CHECK(next->slots[1].value.raw() == next->slots[0].value.raw());
  CHECK(optimizer.named(*next).size() == 1);
}

TEST_CASE("a parameter that two stages share counts once in the norm", "[models]") {
  const std::vector<SquaredNorm> squares{{"t", {9}}, {"a", {4}}, {"b", {3}}, {"t", {9}}};
  CHECK(global_norm(squares) == 4);
}

TEST_CASE("a parameter is shared only if a cut separates its uses", "[models]") {
  const auto models = small_models();
  const Model& gpt = models[1];
  const std::vector<UnitRange> cut{{0, 2}, {2, 3}}, whole{{0, 3}};
  const auto shared = shared_parameters(gpt, cut);
  REQUIRE(shared.size() == 1);
  CHECK(shared[0].name == "wte.weight");
  CHECK(shared[0].stages == std::vector<int>{0, 1});
  CHECK(shared_parameters(gpt, whole).empty());
}

TEST_CASE("buffers average the statistics of micro-batches in order", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  Optimizer optimizer(config_of(Kind::sgd, 1), {},
                      {{.name = "mean", .shape = {1}, .initial = 8, .share = 0.5f}},
                      kernels::Precision::fp32);
  const auto weights = optimizer.initial(stream, 1);
  CHECK(weights->buffers[0].f32()[0] == 8);
  const auto next = optimizer.step(
      stream, weights, {{}, {{tensor(stream, {1}, {4})}, {tensor(stream, {1}, {0})}}}, 0);
  CHECK(next->buffers[0].f32()[0] == 3);  // 8, 6, 3
  CHECK(weights->buffers[0].f32()[0] == 8);
}

TEST_CASE("loading weights rejects a missing tensor, a wrong shape and a wrong type", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  const Optimizer optimizer({}, {{.name = "w", .shape = {2}}}, {{.name = "b", .shape = {1}}},
                            kernels::Precision::fp32);
  const auto b = NamedTensor{"b", tensor(stream, {1}, {1})};
  const auto error = [&](const std::vector<NamedTensor>& tensors) {
    const auto weights = optimizer.from(stream, tensors, 0);
    return weights.ok() ? std::string() : weights.error().text;
  };
  CHECK(error({b}) == "there is no tensor 'w'; it should be there with shape [2]");
  CHECK(error({b, {"w", tensor(stream, {3}, {1, 2, 3})}}) ==
        "the tensor 'w' has shape [3], but the model wants [2]");
  CHECK(error({b, {"w", stream.make({2}, DType::bf16)}}) ==
        "the tensor 'w' is bf16, but f32 is wanted");
  CHECK(error({{"w", tensor(stream, {2}, {1, 2})}}) ==
        "there is no tensor 'b'; it should be there with shape [1]");
  CHECK(error({{"other", {}}, b, {"w", tensor(stream, {2}, {1, 2})}}).empty());
}

TEST_CASE("training continues from saved weights and moments with the same bits", "[models]") {
  for (const auto kind : {Kind::sgd, Kind::adam, Kind::nadamw, Kind::muon}) {
    MemoryPool memory;
    Stream stream(memory);
    const Parameter matrix{.name = "w", .shape = {2, 2}, .use = Parameter::Use::matrix};
    auto config = config_of(kind, 0.1);
    config.momentum = 0.9;
    const auto step = [&](Optimizer& optimizer, const WeightsPtr& weights) {
      const auto k = static_cast<float>(weights->version);
      return optimizer.step(stream, weights, {{tensor(stream, {2, 2}, {1, k, 2, -1})}, {}}, 1);
    };
    Optimizer first(config, {matrix}, {}, kernels::Precision::fp32);
    auto weights = first.initial(stream, 1);
    for (int i = 0; i < 3; ++i) weights = step(first, weights);

    Optimizer second(config, {matrix}, {}, kernels::Precision::fp32);
    REQUIRE(second.restore(stream, first.state(), 3).ok());
    auto resumed = *second.from(stream, first.named(*weights), 3);
    for (int i = 0; i < 3; ++i) {
      weights = step(first, weights);
      resumed = step(second, resumed);
    }
    CHECK(numbers_of(resumed->slots[0].value) == numbers_of(weights->slots[0].value));
    CHECK(resumed->version == 6);
  }
}

TEST_CASE("restoring moments after a step rejects a missing tensor", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  Optimizer optimizer(OptimizerConfig::of(Kind::adamw), {{.name = "w", .shape = {2}}}, {},
                      kernels::Precision::fp32);
  CHECK(optimizer.restore(stream, {}, 0).ok());
  const auto missing = optimizer.restore(stream, {{"w.m", stream.make({2})}}, 1);
  REQUIRE(!missing.ok());
  CHECK(missing.error().text == "there is no tensor 'w.v'; it should be there with shape [2]");
}

TEST_CASE("initial weights made in pieces equal those made at once", "[models]") {
  MemoryPool memory;
  Stream stream(memory), wider(memory, 3);
  const Parameter matrix{
      .name = "m", .shape = {96, 31}, .init = Init::normal(0.02), .use = Parameter::Use::matrix};
  const Parameter vector{.name = "v", .shape = {1'001}, .init = Init::by_inputs(16)};
  const Parameter ones{.name = "o", .shape = {5}, .init = Init::ones()};
  const Optimizer optimizer({}, {matrix, vector, ones, matrix}, {}, kernels::Precision::fp32);
  const auto whole = optimizer.initial(stream, 1);
  for (const std::int64_t numbers : {1, 6, 500, 100'000}) {
    FirstVersion first = optimizer.begin(stream, 1);
    CHECK(first.all == 2 * 1'006 + 3 * 96 * 31);  // A matrix is drawn once and packed for each use.
    int pieces = 0;
    for (std::int64_t done = 0; !first.is_done(); ++pieces) {
      optimizer.go_on(wider, first, numbers);
      REQUIRE(first.done >= std::min(first.all, done + numbers));
      REQUIRE(first.done <= done + numbers + 2 * 96 * 31);  // A whole matrix is packed at a time.
      done = first.done;
    }
    CAPTURE(numbers);
    CHECK((pieces == 1) == (numbers >= first.all));
    for (std::size_t slot = 0; slot < 4; ++slot) {
      CHECK(numbers_of(first.weights->slots[slot].value) == numbers_of(whole->slots[slot].value));
      CHECK(first.weights->slots[slot].packed.empty() == whole->slots[slot].packed.empty());
    }
  }
}

TEST_CASE("an initial value depends only on seed and name and has the declared spread",
          "[models]") {
  MemoryPool memory;
  Stream stream(memory), wider(memory, 3);
  const Parameter normal{.name = "n", .shape = {300, 333}, .init = Init::normal(0.02)};
  const Parameter uniform{.name = "u", .shape = {50'001}, .init = Init::by_inputs(16)};
  const Optimizer both({}, {normal, uniform}, {}, kernels::Precision::fp32);
  const Optimizer turned({}, {uniform, normal}, {}, kernels::Precision::fp32);
  const auto a = both.initial(stream, 1), b = turned.initial(wider, 1), c = both.initial(stream, 2);
  CHECK(numbers_of(a->slots[0].value) == numbers_of(b->slots[1].value));
  CHECK(numbers_of(a->slots[1].value) == numbers_of(b->slots[0].value));
  CHECK(numbers_of(a->slots[0].value) != numbers_of(c->slots[0].value));

  double sum = 0, squares = 0;
  for (const double x : numbers_of(a->slots[0].value)) {
    sum += x;
    squares += x * x;
  }
  CHECK(std::abs(sum / 99'900) < 3e-4);
  CHECK(std::sqrt(squares / 99'900) == Approx(0.02).epsilon(0.01));
  const auto spread = numbers_of(a->slots[1].value);
  CHECK(*std::min_element(spread.begin(), spread.end()) == Approx(-0.25).epsilon(1e-3));
  CHECK(*std::max_element(spread.begin(), spread.end()) == Approx(0.25).epsilon(1e-3));
}

TEST_CASE("an average of the weights begins with them and follows", "[models]") {
  for (const Kind kind : {Kind::sgd, Kind::adamw, Kind::nadamw}) {
    auto config = config_of(kind, 0.1);
    config.ema = 0.75;
    MemoryPool memory;
    Stream stream(memory);
    Optimizer optimizer(config, {{.name = "w", .shape = {2}}}, {}, kernels::Precision::fp32);
    auto weights = optimizer.from(stream, {{"w", tensor(stream, {2}, {1, -3})}}, 0);
    REQUIRE(weights.ok());
    double average[] = {1, -3};
    for (int step = 0; step < 6; ++step) {
      StageGradients gradients{{tensor(stream, {2}, {1.0f + static_cast<float>(step), -1})}, {}};
      const double norm = global_norm(optimizer.squared_norms(stream, gradients));
      *weights = optimizer.step(stream, *weights, std::move(gradients), norm);
      const auto state = optimizer.state();
      REQUIRE(state.back().name == "w.ema");
      const auto now = numbers_of((*weights)->slots[0].value);
      for (std::size_t i = 0; i < 2; ++i) {
        average[i] = 0.75 * average[i] + 0.25 * static_cast<double>(now[i]);
        CHECK(numbers_of(state.back().tensor)[i] == Approx(average[i]).epsilon(1e-5));
      }
    }
    // Stages that predict weights read the other moments alone.
    CHECK(optimizer.moments()[0].size() == optimizer.state().size() - 1);
    Optimizer again(config, {{.name = "w", .shape = {2}}}, {}, kernels::Precision::fp32);
    REQUIRE(again.restore(stream, optimizer.state(), 6).ok());
    CHECK(numbers_of(again.state().back().tensor) == numbers_of(optimizer.state().back().tensor));
  }
}

TEST_CASE("an average of the weights changes no weight", "[models]") {
  for (const auto& model : small_models()) {
    const auto train = [&](double ema, const Way& way) {
      auto config = OptimizerConfig::of(Kind::adamw);
      config.ema = ema;
      Pipeline pipeline({.model = model, .optimizer = config}, way);
      pipeline.start(1);
      for (std::uint64_t step = 0; step < 3; ++step)
        pipeline.step(made_batch(pipeline.stream(), model, 8, step));
      Digester weights;
      for (const auto& [name, tensor] : pipeline.weights()) weights.add(tensor.host_bytes());
      return std::pair(weights.finish(), pipeline.digest());
    };
    const auto [weights, all] = train(0.9, {});
    CHECK(weights == train(0, {}).first);
    CHECK(all == train(0.9, {.cuts = {1}, .backward = Way::Backward::in_halves}).second);
    CHECK(all != train(0.8, {}).second);
  }
}
