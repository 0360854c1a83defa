// Losses, and steps by them, against formulas in double precision.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "catch.h"
#include "training.h"

using namespace troupe;
using namespace troupe::models;

namespace {

constexpr float no_number = std::numeric_limits<float>::quiet_NaN();
constexpr int rows_of_numbers = 16;

/// Returns a model of one linear layer from rows of 4 to rows of 3, and a loss.
Model one_layer(const std::string& loss, const std::string& end = "") {
  return described(R"(model = { format = 1, name = "one", help = "One layer." }
input.row = { type = "f32", shape = [4] }
loss = { kind = ")" +
                   loss + R"(" }
part = [{ body = [{ linear = "head", out = 3 })" +
                   end + "] }]\n");
}

OptimizerConfig plain_descent() {
  auto config = OptimizerConfig::of(OptimizerConfig::Kind::sgd);
  config.rate.lr = 1;
  config.momentum = 0;
  return config;
}

/// The weights of one_layer(), and their gradients, in double precision.
struct Reference {
  std::vector<double> w, b;    // [3, 4] and [3].
  std::vector<double> dw, db;  // The gradients of the mean over targets that count.
  double loss = 0;

  Reference(const Pipeline& pipeline, const Batch& batch, bool is_binary, bool has_relu) {
    for (const auto& [name, tensor] : pipeline.weights()) {
      auto& numbers = name.ends_with("bias") ? b : w;
      numbers.assign(tensor.f32(), tensor.f32() + tensor.count());
    }
    dw.resize(w.size());
    db.resize(b.size());
    std::int64_t counted = 0;
    for (std::size_t row = 0; row < rows_of_numbers; ++row)
      for (std::size_t o = 0; o < 3; ++o) {
        const double t = batch.target.f32()[row * 3 + o];
        if (std::isnan(t)) continue;
        ++counted;
        const float* x = batch.input.f32() + row * 4;
        double y = b[o];
        for (std::size_t i = 0; i < 4; ++i) y += w[o * 4 + i] * x[i];
        const double z = has_relu ? std::max(y, 0.0) : y;
        loss += is_binary ? std::max(z, 0.0) - z * t + std::log1p(std::exp(-std::abs(z)))
                          : (z - t) * (z - t);
        const double slope = is_binary ? 1 / (1 + std::exp(-z)) - t : 2 * (z - t);
        if (has_relu && y <= 0) continue;
        db[o] += slope;
        for (std::size_t i = 0; i < 4; ++i) dw[o * 4 + i] += slope * x[i];
      }
    const auto mean = [&](double& sum) { sum /= static_cast<double>(counted); };
    mean(loss);
    std::ranges::for_each(dw, mean);
    std::ranges::for_each(db, mean);
  }
};

/// Checks the weights after one step of plain_descent() with a learning rate of 1.
void check_step(const Pipeline& pipeline, const Reference& before) {
  for (const auto& [name, tensor] : pipeline.weights()) {
    const bool is_bias = name.ends_with("bias");
    const auto& start = is_bias ? before.b : before.w;
    const auto& gradient = is_bias ? before.db : before.dw;
    for (std::size_t i = 0; i < start.size(); ++i) {
      CAPTURE(name, i);
      CHECK(tensor.f32()[i] == Approx(start[i] - gradient[i]).margin(2e-6));
    }
  }
}

}  // namespace

TEST_CASE("a step by a loss of numbers is that of its formula in double precision", "[models]") {
  const std::string loss = GENERATE("binary", "squared");
  const bool has_relu = GENERATE(false, true);
  const int micro_batches = GENERATE(1, 4);
  CAPTURE(loss, has_relu, micro_batches);
  const Model model = one_layer(loss, has_relu ? ", \"relu\"" : "");
  MemoryPool memory;
  Stream stream(memory);
  auto batch = made_batch(stream, model, rows_of_numbers, 3);
  // Micro-batches of different counts: the first one has one target.
  std::fill_n(batch.target.f32(), 11, no_number);
  Pipeline pipeline({.model = model, .optimizer = plain_descent(), .micro_batches = micro_batches},
                    {});
  pipeline.start(5);
  const Reference before(pipeline, batch, loss == "binary", has_relu);
  const auto result = pipeline.step(batch);
  CHECK(result.loss == Approx(before.loss).epsilon(1e-6));
  check_step(pipeline, before);
}

TEST_CASE("a step without numbers as targets is skipped", "[models]") {
  const Model model = one_layer("squared");
  MemoryPool memory;
  Stream stream(memory);
  Pipeline pipeline({.model = model, .optimizer = plain_descent()}, {});
  pipeline.start(5);
  pipeline.step(made_batch(stream, model, rows_of_numbers, 1));
  const auto before = to_string(pipeline.digest());
  auto empty = made_batch(stream, model, rows_of_numbers, 2);
  std::fill_n(empty.target.f32(), empty.target.count(), no_number);
  const auto result = pipeline.step(empty);
  CHECK(result.loss == 0);
  CHECK(to_string(pipeline.digest()) == before);
}

TEST_CASE("an output in 16 bits has the loss of the same numbers", "[models]") {
  // Products in bf16 on the cores change the output, but a loss is always in fp32.
  const Model model = one_layer("squared");
  MemoryPool memory;
  Stream stream(memory);
  const auto batch = made_batch(stream, model, rows_of_numbers, 3);
  const auto loss_in = [&](kernels::Precision precision) {
    Pipeline pipeline({.model = model, .optimizer = plain_descent(), .precision = precision}, {});
    pipeline.start(5);
    return pipeline.step(batch).loss;
  };
  const double wanted = loss_in(kernels::Precision::fp32);
  CHECK(loss_in(kernels::Precision::bf16_pairs) == Approx(wanted).epsilon(0.05));
  CHECK(loss_in(kernels::Precision::fp16_chain) == Approx(wanted).epsilon(0.05));
}

TEST_CASE("a model says what its loss takes", "[models]") {
  const auto models = small_models();
  const auto found = std::ranges::find(models, "segmenter", &Model::kind);
  REQUIRE(found != models.end());
  const Model& segmenter = *found;
  CHECK(segmenter.sample.target == Shape{1, 8, 8});
  CHECK(segmenter.sample.target_type == DType::f32);
  CHECK(segmenter.sample.target_bounds == NumberBounds{.least = 0, .most = 1});
  CHECK(segmenter.classes == 0);
  CHECK(segmenter.may_leave_out());
  const Model gauge = one_layer("squared");
  CHECK(gauge.sample.target == Shape{3});
  CHECK(gauge.sample.target_bounds == NumberBounds());
}

// Reproduces a bug: the loss over classes overwrote the output that relu had saved.
TEST_CASE("a loss over classes leaves the output that a relu saved", "[models]") {
  const std::string behind = GENERATE("", ", { dropout = 0.0 }", ", \"cut\"");
  CAPTURE(behind);
  const Model model = described(R"(model = { format = 1, name = "one", help = "One layer." }
input.row = { type = "f32", shape = [4] }
loss = { kind = "cross_entropy", classes = 3 }
part = [{ body = [{ linear = "head", out = 3 }, "relu")" +
                                behind + "] }]\n");
  MemoryPool memory;
  Stream stream(memory);
  const auto batch = made_batch(stream, model, rows_of_numbers, 3);
  Pipeline pipeline({.model = model, .optimizer = plain_descent(), .micro_batches = 1}, {});
  pipeline.start(5);
  std::vector<double> w, b, dw(12), db(3);
  for (const auto& [name, tensor] : pipeline.weights())
    (name.ends_with("bias") ? b : w).assign(tensor.f32(), tensor.f32() + tensor.count());
  for (std::size_t row = 0; row < rows_of_numbers; ++row) {
    const float* x = batch.input.f32() + row * 4;
    std::vector<double> y = b;
    double sum = 0;
    for (std::size_t o = 0; o < 3; ++o) {
      for (std::size_t i = 0; i < 4; ++i) y[o] += w[o * 4 + i] * x[i];
      sum += std::exp(std::max(y[o], 0.0));
    }
    for (std::size_t o = 0; o < 3; ++o) {
      if (y[o] <= 0) continue;
      const bool is_target = batch.target.data<std::int32_t>()[row] == static_cast<int>(o);
      const double slope = (std::exp(y[o]) / sum - is_target) / rows_of_numbers;
      db[o] += slope;
      for (std::size_t i = 0; i < 4; ++i) dw[o * 4 + i] += slope * x[i];
    }
  }
  pipeline.step(batch);
  for (const auto& [name, tensor] : pipeline.weights())
    for (std::int64_t i = 0; i < tensor.count(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      CAPTURE(name, i);
      const double wanted = name.ends_with("bias") ? b[at] - db[at] : w[at] - dw[at];
      CHECK(tensor.f32()[i] == Approx(wanted).margin(2e-6));
    }
}
