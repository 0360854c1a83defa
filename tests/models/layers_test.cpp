// Compares the gradients of each layer with finite differences.

#include <cmath>
#include <functional>

#include "catch.h"
#include "core/random.h"
#include "models/layers/attention/fused_attention.h"
#include "models/layers/attention/projected_attention.h"
#include "models/layers/attention/self_attention.h"
#include "models/layers/concat.h"
#include "models/layers/dropout.h"
#include "models/layers/images/average_pool.h"
#include "models/layers/images/batch_norm.h"
#include "models/layers/images/class_token.h"
#include "models/layers/images/conv2d.h"
#include "models/layers/images/group_norm.h"
#include "models/layers/images/patches.h"
#include "models/layers/images/window_pool.h"
#include "models/layers/layer_norm.h"
#include "models/layers/linear.h"
#include "models/layers/losses/cross_entropy.h"
#include "models/layers/networks/feed_forward.h"
#include "models/layers/networks/gated_network.h"
#include "models/layers/networks/mixture_of_experts.h"
#include "models/layers/parallel.h"
#include "models/layers/position_embedding.h"
#include "models/layers/relu.h"
#include "models/layers/residual.h"
#include "models/layers/residual_stream.h"
#include "models/layers/rms_norm.h"
#include "models/layers/scale.h"
#include "models/layers/sequence.h"
#include "models/layers/token_embedding.h"
#include "models/train/optimizer.h"

using namespace troupe;
using namespace troupe::models;

namespace {

/// Returns numbers of both signs, none close to 0, so that no finite difference crosses a kink.
Tensor numbers(Stream& stream, const Shape& shape, std::uint64_t seed) {
  Tensor made = stream.make(shape);
  for (std::int64_t i = 0; i < made.count(); ++i) {
    const float u =
        2 * uniform(RandomKey{.seed = seed}.words(static_cast<std::uint32_t>(i))[0]) - 1;
    made.f32()[i] = u + (u < 0 ? -0.1f : 0.1f);
  }
  return made;
}

Parameter matrix(const std::string& name, std::int64_t inputs, std::int64_t outputs,
                 kernels::WeightLayout layout = kernels::WeightLayout::out_in) {
  const bool outputs_first = layout == kernels::WeightLayout::out_in;
  return {.name = name,
          .shape = outputs_first ? Shape{outputs, inputs} : Shape{inputs, outputs},
          .use = Parameter::Use::matrix,
          .layout = layout};
}

LayerPtr linear(const Parameter& matrix) { return std::make_unique<const Linear>(matrix); }

/// A layer with its own weights, and its results for one input.
class Trial {
 public:
  Trial(const Layer& layer, Stream& stream) : layer_(layer), stream_(stream) {
    std::uint64_t seed = 100;
    for (const auto& parameter : layer.parameters())
      values_.push_back({parameter.name, numbers(stream, parameter.shape, ++seed)});
    for (const auto& buffer : layer.buffers())
      values_.push_back({buffer.name, numbers(stream, buffer.shape, ++seed)});
  }

  Tensor& value(std::size_t parameter) { return values_[parameter].tensor; }

  struct Outcome {
    Tensor y, dx;
    std::vector<Tensor> gradients, saved, statistics;
  };

  Tensor forward(const Tensor& x, Mode mode = Mode::training) const {
    Outcome outcome;
    return run(x, pass(mode), outcome);
  }

  /// Runs forward and backward; `dy` is the gradient of the output.
  Outcome both_ways(const Tensor& x, const Tensor& dy, InputGradient input_gradient) const {
    Outcome outcome;
    const Pass training = pass(Mode::training);
    outcome.y = run(x, training, outcome);
    for (const auto& parameter : layer_.parameters()) {
      auto& gradient = outcome.gradients.emplace_back(stream_.make(parameter.shape));
      std::fill_n(gradient.f32(), gradient.count(), 0.0f);
    }
    const auto weights = this->weights();
    const Layer::In in{.pass = training,
                       .weights = weights->slots,
                       .buffers = weights->buffers,
                       .input_gradient = input_gradient};
    outcome.dx = layer_.backward_input(in, dy, outcome.saved);
    layer_.backward_weight(in, outcome.saved, outcome.gradients);
    return outcome;
  }

  Tensor targets;  // Used if the layer is a loss.

 private:
  WeightsPtr weights() const {
    const Optimizer optimizer({}, layer_.parameters(), layer_.buffers(), kernels::Precision::fp32);
    return *optimizer.from(stream_, values_, 0);
  }
  Pass pass(Mode mode) const {
    return {.stream = stream_,
            .mode = mode,
            .key = {.seed = 1, .step = 2, .sample = 3},
            .targets = targets,
            .loss_gradient = 1};
  }
  Tensor run(const Tensor& x, const Pass& pass, Outcome& outcome) const {
    outcome.saved.resize(static_cast<std::size_t>(layer_.saved()));
    outcome.statistics.resize(layer_.buffers().size());
    const auto weights = this->weights();
    // A layer may overwrite its input, which is needed again.
    Tensor copy = stream_.make(x.shape(), x.dtype());
    std::copy_n(static_cast<const std::byte*>(x.raw()), x.bytes(),
                static_cast<std::byte*>(copy.raw()));
    return layer_.forward({.pass = pass, .weights = weights->slots, .buffers = weights->buffers},
                          std::move(copy), outcome.saved, outcome.statistics);
  }

  const Layer& layer_;
  Stream& stream_;
  std::vector<NamedTensor> values_;
};

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.count(); ++i)
    sum += static_cast<double>(a.f32()[i]) * static_cast<double>(b.f32()[i]);
  return sum;
}

/// Compares a gradient with the change of `objective` when elements of `variable` change.
void compare(const std::string& what, Tensor& variable, const Tensor& gradient,
             const std::function<double()>& objective) {
  constexpr float step = 4e-3f;
  double scale = 0;
  for (std::int64_t i = 0; i < gradient.count(); ++i)
    scale = std::max(scale, std::abs(static_cast<double>(gradient.f32()[i])));
  const std::int64_t stride = std::max<std::int64_t>(1, gradient.count() / 40);
  for (std::int64_t i = 0; i < gradient.count(); i += stride) {
    const float kept = variable.f32()[i];
    variable.f32()[i] = kept + step;
    const double above = objective();
    variable.f32()[i] = kept - step;
    const double below = objective();
    variable.f32()[i] = kept;
    const double difference = (above - below) / (2 * static_cast<double>(step));
    CAPTURE(what, i, difference, gradient.f32()[i]);
    CHECK(std::abs(gradient.f32()[i] - difference) <= 3e-3 * scale + 1e-3);
  }
}

void check_weights(const Layer& layer, Trial& trial, const Tensor& x, const Tensor& dy,
                   const std::vector<Tensor>& gradients) {
  const auto objective = [&] { return dot(trial.forward(x), dy); };
  const auto parameters = layer.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    compare(parameters[i].name, trial.value(i), gradients[i], objective);
}

/// Checks everything that a layer guarantees for this input.
void check(const Layer& layer, Stream& stream, const Shape& shape) {
  Trial trial(layer, stream);
  Tensor x = numbers(stream, shape, 1);
  const Tensor dy = numbers(stream, layer.output(shape), 2);
  const auto outcome = trial.both_ways(x, dy, InputGradient::wanted);
  CHECK(outcome.y.shape() == layer.output(shape));
  REQUIRE(outcome.dx.shape() == shape);
  for (const auto& saved : outcome.saved) CHECK(saved.empty());
  for (const auto& statistic : outcome.statistics) CHECK(!statistic.empty());
  compare("input", x, outcome.dx, [&] { return dot(trial.forward(x), dy); });
  check_weights(layer, trial, x, dy, outcome.gradients);

  const auto unwanted = trial.both_ways(x, dy, InputGradient::unwanted);
  for (std::size_t i = 0; i < outcome.gradients.size(); ++i)
    CHECK(dot(unwanted.gradients[i], unwanted.gradients[i]) ==
          dot(outcome.gradients[i], outcome.gradients[i]));
}

}  // namespace

TEST_CASE("gradients of layers agree with finite differences", "[models]") {
  using kernels::Mask;
  using kernels::WeightLayout;
  MemoryPool memory;
  Stream stream(memory);
  const Parameter bias{.name = "bias", .shape = {5}};

  SECTION("linear, weights [out, in]") {
    check(Linear(matrix("w", 7, 5), bias), stream, {3, 2, 7});
  }
  SECTION("linear, weights [in, out]") {
    check(Linear(matrix("w", 7, 5, WeightLayout::in_out), bias), stream, {3, 7});
  }
  SECTION("linear without bias") { check(Linear(matrix("w", 7, 5)), stream, {4, 7}); }
  SECTION("layer norm") { check(LayerNorm("n", 9, 1e-5f), stream, {2, 3, 9}); }
  SECTION("rms norm") { check(RmsNorm("n", 9, 1e-5f), stream, {2, 3, 9}); }
  SECTION("feed-forward network with erf") {
    check(FeedForward({matrix("u", 7, 9), {.name = "ub", .shape = {9}}}, {matrix("d", 9, 5), bias},
                      kernels::Gelu::erf),
          stream, {3, 2, 7});
  }
  SECTION("feed-forward network with tanh, weights [in, out]") {
    check(FeedForward({matrix("u", 7, 9, WeightLayout::in_out), {.name = "ub", .shape = {9}}},
                      {matrix("d", 9, 5, WeightLayout::in_out), bias}, kernels::Gelu::tanh),
          stream, {5, 7});
  }
  SECTION("relu") { check(Relu(), stream, {5, 7}); }
  SECTION("positions of a sample shorter than the table") {
    check(PositionEmbedding({.name = "p", .shape = {5, 4}}), stream, {3, 2, 4});
  }
  SECTION("causal self-attention") { check(SelfAttention(2, Mask::causal), stream, {2, 5, 18}); }
  SECTION("full self-attention") { check(SelfAttention(3, Mask::full), stream, {2, 4, 18}); }
  SECTION("rotary attention with grouped queries") {
    check(ProjectedAttention(
              AttentionCore({.queries = 4, .keys = 2, .width = 6, .rope = kernels::RopeForm()}),
              {matrix("q", 10, 24), matrix("k", 10, 12), matrix("v", 10, 12)}),
          stream, {2, 5, 10});
  }
  SECTION("rotary attention with biases, norms, a window, a cap and neighbours") {
    const kernels::RopeForm rope{.part = 4, .pairs = kernels::RopeForm::Pairs::neighbours};
    check(ProjectedAttention(AttentionCore({.queries = 4,
                                            .keys = 2,
                                            .width = 6,
                                            .window = 3,
                                            .scale = 0.7f,
                                            .cap = 1.5f,
                                            .rope = rope},
                                           HeadNorms{.query = {.name = "qn", .shape = {6}},
                                                     .key = {.name = "kn", .shape = {6}},
                                                     .eps = 1e-5f}),
                             {matrix("q", 10, 24),
                              matrix("k", 10, 12),
                              matrix("v", 10, 12),
                              {{.name = "qb", .shape = {24}},
                               {.name = "kb", .shape = {12}},
                               {.name = "vb", .shape = {12}}}}),
          stream, {2, 5, 10});
  }
  SECTION("attention of one projection, by heads") {
    const AttentionHeads heads{
        .queries = 3, .keys = 3, .width = 4, .rope = kernels::RopeForm{.part = 2}};
    check(FusedAttention(AttentionCore(heads), FusedAttention::Order::per_head), stream,
          {2, 5, 36});
    check(FusedAttention(AttentionCore(heads), FusedAttention::Order::qkv), stream, {2, 5, 36});
  }
  SECTION("swiglu") {
    check(GatedNetwork(matrix("g", 6, 9), matrix("u", 6, 9), Gate::silu), stream, {4, 6});
  }
  SECTION("gelu gates") {
    check(GatedNetwork(matrix("g", 6, 9), matrix("u", 6, 9), Gate::gelu), stream, {4, 6});
    check(GatedNetwork(matrix("g", 6, 9), matrix("u", 6, 9), Gate::gelu_tanh), stream, {4, 6});
  }
  SECTION("mixture of experts") {
    const auto expert = [](const std::string& name, std::int64_t hidden) {
      return MixtureOfExperts::Expert{.gate = matrix(name + "g", 6, hidden),
                                      .up = matrix(name + "u", 6, hidden),
                                      .down = matrix(name + "d", hidden, 6)};
    };
    const Parameter router{.name = "r", .shape = {3, 6}};
    const std::vector<MixtureOfExperts::Expert> experts = {expert("0", 5), expert("1", 5),
                                                           expert("2", 5)};
    for (const bool renormalise : {false, true})
      check(MixtureOfExperts(router, experts, {.top = 2, .renormalise = renormalise}), stream,
            {2, 3, 6});
    check(MixtureOfExperts(router, experts, {.gate = Gate::gelu, .top = 1}), stream, {5, 6});
    check(MixtureOfExperts(router, experts, {.top = 3}), stream, {5, 6});
  }
  SECTION("scale and soft cap") {
    check(Scale(2.5f), stream, {4, 6});
    check(SoftCap(1.5f), stream, {4, 6});
  }
  SECTION("RMS norm with an offset") { check(RmsNorm("n", 6, 1e-5f, 1), stream, {4, 6}); }
  SECTION("parallel branches") {
    std::vector<LayerPtr> branches;
    branches.push_back(
        std::make_unique<const GatedNetwork>(matrix("g", 6, 9), matrix("u", 6, 9), Gate::silu));
    branches.push_back(
        std::make_unique<const GatedNetwork>(matrix("a", 6, 9), matrix("b", 6, 9), Gate::gelu));
    branches.push_back(std::make_unique<const Linear>(matrix("c", 6, 9)));
    check(Parallel(std::move(branches)), stream, {4, 6});
  }
  SECTION("branches side by side") {
    std::vector<Concat::Branch> rows, images;
    rows.push_back({std::make_unique<const Linear>(matrix("a", 6, 4)), 4});
    rows.push_back(
        {std::make_unique<const GatedNetwork>(matrix("b", 6, 3), matrix("c", 6, 3), Gate::silu),
         3});
    check(Concat(Concat::Along::last, std::move(rows)), stream, {2, 3, 6});
    for (const std::int64_t channels : {2, 1, 3})
      images.push_back(
          {std::make_unique<const Conv2d>(
               Parameter{.name = "w" + std::to_string(channels), .shape = {channels, 2, 3, 3}}, 1,
               1),
           channels});
    check(Concat(Concat::Along::channels, std::move(images)), stream, {2, 2, 3, 4});
  }
  SECTION("dropout") { check(Dropout(0.3, 5), stream, {3, 11}); }
  SECTION("convolution") {
    check(Conv2d({.name = "w", .shape = {4, 3, 3, 3}}, 1, 1), stream, {2, 3, 5, 4});
  }
  SECTION("convolution with stride") {
    check(Conv2d({.name = "w", .shape = {4, 3, 3, 3}}, 2, 1), stream, {2, 3, 5, 6});
  }
  SECTION("convolution of one pixel") {
    check(Conv2d({.name = "w", .shape = {4, 3, 1, 1}}, 2, 0), stream, {2, 3, 5, 6});
  }
  SECTION("batch norm") { check(BatchNorm("n", 3, 1e-5f), stream, {4, 3, 3, 2}); }
  SECTION("group norm") {
    check(GroupNorm("n", 6, 2, 1e-5f), stream, {2, 6, 3, 2});
    check(GroupNorm("n", 3, 3, 1e-5f), stream, {2, 3, 3, 2});
    check(GroupNorm("n", 4, 1, 1e-5f), stream, {3, 4, 2, 2});
  }
  SECTION("average pool") { check(AveragePool(), stream, {2, 3, 3, 2}); }
  SECTION("greatest numbers and means of windows") {
    const Windows windows{.kernel = 3, .stride = 2, .padding = 1};
    // Few numbers, of which no two are so close that the step of a difference swaps them.
    check(MaxPool({.kernel = 2, .stride = 2}), stream, {1, 2, 4, 4});
    check(WindowMean(windows), stream, {2, 3, 5, 4});
    check(WindowMean({.kernel = 2, .stride = 2}), stream, {2, 1, 4, 5});
  }
  SECTION("patches") { check(Patches(2), stream, {2, 3, 4, 6}); }
  SECTION("class token") {
    check(ClassToken({.name = "t", .shape = {1, 1, 4}}), stream, {3, 2, 4});
  }
  SECTION("first row") { check(FirstRow(), stream, {3, 2, 4}); }
  SECTION("residual") {
    check(Residual(in_sequence(std::make_unique<const Linear>(matrix("v", 6, 7)),
                               std::make_unique<const Linear>(matrix("w", 7, 6)))),
          stream, {4, 6});
  }
  SECTION("residual stream") {
    const auto layer = residual_stream(
        {std::make_unique<const LayerNorm>("m", 6, 1e-5f), linear(matrix("v", 6, 6))},
        {std::make_unique<const RmsNorm>("n", 6, 1e-5f), linear(matrix("w", 6, 6))});
    check(*layer, stream, {4, 6});
  }
  SECTION("residual with a shortcut") {
    check(Residual(std::make_unique<const Linear>(matrix("w", 6, 5)),
                   std::make_unique<const Linear>(matrix("s", 6, 5), bias)),
          stream, {4, 6});
  }
}

TEST_CASE("an embedding returns the rows of its tokens and their gradients", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  const TokenEmbedding layer({.name = "table", .shape = {6, 4}});
  Trial trial(layer, stream);
  Tensor tokens = stream.make({2, 3}, DType::i32);
  const std::int32_t given[] = {5, 0, 5, 2, 1, 5};
  std::copy_n(given, 6, tokens.data<std::int32_t>());
  const Tensor dy = numbers(stream, {2, 3, 4}, 2);
  const auto outcome = trial.both_ways(tokens, dy, InputGradient::wanted);
  CHECK(outcome.y.shape() == Shape{2, 3, 4});
  CHECK(outcome.y.f32()[0] == trial.value(0).f32()[5 * 4]);
  CHECK(outcome.dx.empty());
  check_weights(layer, trial, tokens, dy, outcome.gradients);
}

TEST_CASE("cross entropy returns a loss for each target and the gradient of the logits",
          "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  const CrossEntropy layer;
  Trial trial(layer, stream);
  trial.targets = stream.make({2, 2}, DType::i32);
  const std::int32_t given[] = {4, 0, 2, 2};
  std::copy_n(given, 4, trial.targets.data<std::int32_t>());
  Tensor logits = numbers(stream, {2, 2, 5}, 1);
  Tensor ones = stream.make({4});
  std::fill_n(ones.f32(), 4, 1.0f);
  const auto outcome = trial.both_ways(logits, {}, InputGradient::wanted);
  REQUIRE(outcome.y.shape() == Shape{4});
  double sum = 0;
  for (int c = 0; c < 5; ++c) sum += std::exp(static_cast<double>(logits.f32()[c]));
  CHECK(outcome.y.f32()[0] == Approx(std::log(sum) - logits.f32()[4]).epsilon(1e-6));
  compare("logits", logits, outcome.dx, [&] { return dot(trial.forward(logits), ones); });
}

TEST_CASE("group norm agrees with its formula and depends on no other sample", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  const GroupNorm layer("n", 6, 3, 1e-3f);
  const Tensor x = numbers(stream, {4, 6, 5, 3}, 1);
  Trial trial(layer, stream);
  const Tensor y = trial.forward(x);
  const std::int64_t pixels = 15, of_group = 2 * pixels;
  for (std::int64_t group = 0; group < 4 * 3; ++group) {
    const float* first = x.f32() + group * of_group;
    double mean = 0, squares = 0;
    for (std::int64_t i = 0; i < of_group; ++i) mean += static_cast<double>(first[i]) / of_group;
    for (std::int64_t i = 0; i < of_group; ++i) squares += (first[i] - mean) * (first[i] - mean);
    const double deviation = std::sqrt(squares / of_group + 1e-3);
    for (std::int64_t i = 0; i < of_group; ++i) {
      const auto channel = group % 3 * 2 + i / pixels;
      const double wanted =
          (first[i] - mean) / deviation * static_cast<double>(trial.value(0).f32()[channel]) +
          static_cast<double>(trial.value(1).f32()[channel]);
      CHECK(y.f32()[group * of_group + i] == Approx(wanted).margin(1e-5));
    }
  }
  const Tensor alone = trial.forward(x.slice(2, 1));
  CHECK(std::equal(alone.f32(), alone.f32() + alone.count(), y.f32() + 2 * alone.count()));
}

TEST_CASE("batch norm returns statistics in training and uses its buffers in evaluation",
          "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  const BatchNorm layer("n", 2, 0);
  Trial trial(layer, stream);
  Tensor x = stream.make({3, 2, 1, 1});
  const float given[] = {1, 10, 2, 10, 6, 40};
  std::copy_n(given, 6, x.f32());
  const auto outcome = trial.both_ways(x, numbers(stream, {3, 2, 1, 1}, 2), InputGradient::wanted);
  REQUIRE(outcome.statistics.size() == 2);
  CHECK(outcome.statistics[0].f32()[0] == 3);
  CHECK(outcome.statistics[0].f32()[1] == 20);
  CHECK(outcome.statistics[1].f32()[0] == 7);  // (4 + 1 + 9) / 2
  CHECK(outcome.statistics[1].f32()[1] == 300);

  const float one[] = {1, 1}, zero[] = {0, 0}, mean[] = {2, 10}, variance[] = {4, 100};
  std::copy_n(one, 2, trial.value(0).f32());
  std::copy_n(zero, 2, trial.value(1).f32());
  std::copy_n(mean, 2, trial.value(2).f32());
  std::copy_n(variance, 2, trial.value(3).f32());
  const Tensor y = trial.forward(x, Mode::evaluation);
  CHECK(y.f32()[4] == 2);  // (6 - 2) / 2
  CHECK(y.f32()[5] == 3);  // (40 - 10) / 10
}

TEST_CASE("dropout zeroes about its rate, scales the rest and does nothing in evaluation",
          "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  const Dropout layer(0.25, 1);
  const Trial trial(layer, stream);
  Tensor x = stream.make({8, 1'000});
  std::fill_n(x.f32(), 8'000, 3.0f);
  const Tensor y = trial.forward(x);
  const auto zeros = std::count(y.f32(), y.f32() + 8'000, 0.0f);
  CHECK(zeros > 1'800);
  CHECK(zeros < 2'200);
  CHECK(std::count(y.f32(), y.f32() + 8'000, 4.0f) == 8'000 - zeros);
  const Tensor unchanged = trial.forward(x, Mode::evaluation);
  CHECK(std::count(unchanged.f32(), unchanged.f32() + 8'000, 3.0f) == 8'000);
}

TEST_CASE("dropout depends on the sample, not on the micro-batch that holds it", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  const Dropout layer(0.5, 1);
  const auto dropped = [&](std::uint32_t first, std::int64_t samples) {
    Tensor x = stream.make({samples, 100});
    std::fill_n(x.f32(), x.count(), 1.0f);
    const Pass pass{
        .stream = stream, .key = {.seed = 1, .step = 0, .sample = first}, .targets = {}};
    return layer.forward({.pass = pass, .weights = {}, .buffers = {}}, x, {}, {});
  };
  const Tensor both = dropped(0, 2), second = dropped(1, 1);
  CHECK(std::equal(second.f32(), second.f32() + 100, both.f32() + 100));
  CHECK(!std::equal(second.f32(), second.f32() + 100, both.f32()));
}
