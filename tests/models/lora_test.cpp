#include "models/layers/lora.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "catch.h"
#include "models/train/parameter_groups.h"
#include "training.h"

using namespace troupe;
using namespace troupe::models;

namespace {

using Kind = OptimizerConfig::Kind;

Value lora(std::int64_t rank, double alpha, Value::List match) {
  Value table;
  table.set("rank", rank);
  table.set("alpha", alpha);
  table.set("match", std::move(match));
  return table;
}

Value small_gpt2() {
  Value options;
  for (const auto& [key, size] :
       {std::pair{"vocab", 7}, {"context", 5}, {"width", 8}, {"heads", 2}, {"layers", 2}})
    options.set(key, size);
  return options;
}

Value small_llama() {
  Value options = small_gpt2();
  options.set("kv_heads", 1);
  options.set("ffn", 12);
  return options;
}

Value small_gemma() {
  Value options = small_llama();
  options.set("head_width", 4);
  options.set("post_norms", true);
  return options;
}

Value small_neox() {
  Value options = small_gpt2();
  options.set("rotary", 0.5);
  return options;
}

Model with_lora(const std::string& kind, Value options, Value::List match) {
  options.set("lora", lora(2, 6, std::move(match)));
  return build(kind, options);
}

Model with_rate(const std::string& kind, Value options, Value::List match) {
  Value table = lora(2, 6, std::move(match));
  table.set("rate", 0.4);
  options.set("lora", std::move(table));
  return build(kind, options);
}

struct Passed {
  std::vector<float> losses;
  std::map<std::string, std::vector<double>> gradients;
};

/// Runs both passes over a batch with these weights.
Passed pass(const Model& model, const std::map<std::string, std::vector<double>>& weights) {
  MemoryPool memory;
  Stream stream(memory);
  Stage stage(model, {0, static_cast<int>(model.units.size())}, {});
  Optimizer optimizer(OptimizerConfig::of(Kind::sgd), stage.parameters(), stage.buffers(),
                      kernels::Precision::fp32);
  std::vector<NamedTensor> tensors;
  for (const auto& parameter : stage.parameters()) {
    Tensor tensor = stream.make(parameter.shape);
    const auto& numbers = weights.at(parameter.name);
    std::ranges::transform(numbers, tensor.f32(),
                           [](double number) { return static_cast<float>(number); });
    tensors.push_back({parameter.name, std::move(tensor)});
  }
  const auto made = optimizer.from(stream, tensors, 0);
  REQUIRE(made.ok());
  const auto batch = made_batch(stream, model, 3, 5);
  stage.begin_step(Share::whole(1, 1), batch.target.count());
  const Tensor losses = stage.forward(stream, {}, **made, batch.input, batch.target).stream;
  stage.backward(stream, 0, **made, {});
  auto gradients = join(stream, {stage.take_gradients()});
  Passed passed;
  const auto numbers = losses.numbers<float>();
  passed.losses.assign(numbers.begin(), numbers.end());
  for (const auto& parameter : stage.parameters()) {
    if (parameter.frozen) continue;
    const Tensor gradient = optimizer.gradient(stream, gradients, parameter.name);
    const auto all = gradient.numbers<float>();
    passed.gradients[parameter.name].assign(all.begin(), all.end());
  }
  return passed;
}

/// Returns random weights for all parameters of a model, by name.
std::map<std::string, std::vector<double>> drawn_weights(const Model& model) {
  std::map<std::string, std::vector<double>> weights;
  std::uint32_t drawn = 0;
  for (const auto& unit : model.units)
    for (const auto& parameter : unit.layer->parameters()) {
      auto& numbers = weights[parameter.name];
      if (!numbers.empty()) continue;
      for (std::int64_t i = 0; i < parameter.shape.count(); ++i)
        numbers.push_back(0.4 * uniform(RandomKey{.seed = 9}.words(drawn++)[0]) - 0.2 +
                          (parameter.name.find("norm") != std::string::npos ? 1 : 0));
    }
  return weights;
}

}  // namespace

TEST_CASE("low-rank additions freeze all other parameters", "[models]") {
  const auto model = with_lora("gpt2", small_gpt2(), {"*.c_attn"});
  const auto names = parameter_names(model);
  const auto is_trained = [&](const std::string& name) { return !model.frozen.contains(name); };
  std::vector<std::string> trained;
  std::ranges::copy_if(names, std::back_inserter(trained), is_trained);
  CHECK(trained ==
        std::vector<std::string>{"h.0.attn.c_attn.lora_A.weight", "h.0.attn.c_attn.lora_B.weight",
                                 "h.1.attn.c_attn.lora_A.weight", "h.1.attn.c_attn.lora_B.weight"});
  for (const auto& unit : model.units)
    for (const auto& parameter : unit.layer->parameters())
      if (parameter.name == "h.0.attn.c_attn.lora_A.weight")
        CHECK(parameter.shape == Shape{2, 8});
      else if (parameter.name == "h.0.attn.c_attn.lora_B.weight")
        CHECK(parameter.shape == Shape{24, 2});
}

// With B = 0 a model with additions computes what its base computes.
TEST_CASE("low-rank additions begin at zero", "[models]") {
  for (const auto& [kind, options, match] :
       {std::tuple{"gpt2", small_gpt2(), Value::List{"*.c_attn", "*.c_fc"}},
        {"llama", small_llama(), Value::List{"*"}}}) {
    const auto base = build(kind, options), adapted = with_lora(kind, options, match);
    auto weights = drawn_weights(adapted);
    for (auto& [name, numbers] : weights)
      if (name.ends_with(".lora_B.weight")) std::ranges::fill(numbers, 0);
    const auto wanted = pass(base, weights).losses, found = pass(adapted, weights).losses;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      CHECK(found[i] == Approx(wanted[i]).epsilon(1e-6));
  }
}

// W' = W + s B A for [outputs, inputs]. So dB = s dW' A^T and dA = s B^T dW'.
TEST_CASE("additions have the losses and gradients of the merged matrix", "[models]") {
  for (const auto& [kind, options] : {std::pair{"gpt2", small_gpt2()},
                                      {"llama", small_llama()},
                                      {"gemma", small_gemma()},
                                      {"gpt_neox", small_neox()},
                                      {"phi", small_neox()}}) {
    auto adapted = with_lora(kind, options, {"*"});
    auto weights = drawn_weights(adapted);
    const auto found = pass(adapted, weights);
    auto merged_weights = weights;
    std::map<std::string, Parameter> matrices;
    for (const auto& unit : adapted.units)
      for (const auto& parameter : unit.layer->parameters())
        if (parameter.lora_rank > 0) matrices.emplace(parameter.name, parameter);
    REQUIRE(matrices.size() >= 8);
    struct At {
      std::int64_t rank, inputs, outputs;
      bool is_out_in;
      std::size_t w(std::int64_t o, std::int64_t i) const {
        return static_cast<std::size_t>(is_out_in ? o * inputs + i : i * outputs + o);
      }
      std::size_t a(std::int64_t r, std::int64_t i) const {
        return static_cast<std::size_t>(r * inputs + i);
      }
      std::size_t b(std::int64_t o, std::int64_t r) const {
        return static_cast<std::size_t>(o * rank + r);
      }
    };
    const auto visit = [&](auto each) {
      for (const auto& [name, parameter] : matrices) {
        const auto shape = linear_shape(parameter, kernels::Precision::fp32);
        const std::string base = name.substr(0, name.size() - 7);
        const At at{parameter.lora_rank, shape.inputs, shape.outputs,
                    parameter.layout == kernels::WeightLayout::out_in};
        for (std::int64_t o = 0; o < at.outputs; ++o)
          for (std::int64_t i = 0; i < at.inputs; ++i)
            for (std::int64_t r = 0; r < at.rank; ++r)
              each(at, name, base + ".lora_A.weight", base + ".lora_B.weight", o, i, r);
      }
    };
    constexpr double scale = 3;
    visit([&](const At& at, const std::string& w, const std::string& a, const std::string& b,
              std::int64_t o, std::int64_t i, std::int64_t r) {
      merged_weights[w][at.w(o, i)] +=
          scale * weights.at(b)[at.b(o, r)] * weights.at(a)[at.a(r, i)];
    });
    const auto wanted = pass(build(kind, options), merged_weights);
    for (std::size_t i = 0; i < wanted.losses.size(); ++i)
      CHECK(found.losses[i] == Approx(wanted.losses[i]).epsilon(1e-5));
    std::map<std::string, std::vector<double>> gradients;
    visit([&](const At& at, const std::string& w, const std::string& a, const std::string& b,
              std::int64_t o, std::int64_t i, std::int64_t r) {
      const double dw = wanted.gradients.at(w)[at.w(o, i)];
      gradients[a].resize(weights.at(a).size());
      gradients[b].resize(weights.at(b).size());
      gradients[a][at.a(r, i)] += scale * dw * weights.at(b)[at.b(o, r)];
      gradients[b][at.b(o, r)] += scale * dw * weights.at(a)[at.a(r, i)];
    });
    REQUIRE(found.gradients.size() == gradients.size());
    for (const auto& [name, numbers] : gradients)
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        CAPTURE(kind, name, i);
        CHECK(found.gradients.at(name)[i] == Approx(numbers[i]).epsilon(1e-3).margin(1e-6));
      }
  }
}

TEST_CASE("no cut changes a bit of training with low-rank additions", "[models]") {
  std::vector<Model> models;
  models.push_back(with_lora("gpt2", small_gpt2(), {"h.1.*"}));
  models.push_back(with_lora("gpt2", small_gpt2(), {"*.c_attn", "*.c_proj"}));
  models.push_back(with_lora("llama", small_llama(), {"*q_proj", "*v_proj", "*up_proj"}));
  models.push_back(with_rate("llama", small_llama(), {"*"}));
  for (const auto& model : models)
    for (const auto precision : {kernels::Precision::fp32, kernels::Precision::bf16_pairs}) {
      const auto digest_of = [&](const Way& way) {
        auto config = OptimizerConfig::of(Kind::adamw);
        config.clip_norm = 0.5;
        Pipeline pipeline(
            {.model = model, .optimizer = config, .groups = 2, .precision = precision}, way);
        pipeline.start(1);
        for (std::uint64_t step = 0; step < 4; ++step)
          pipeline.step(made_batch(pipeline.stream(), model, 8, step));
        return pipeline.digest();
      };
      const auto whole = digest_of({});
      CHECK(digest_of({.cuts = {1}}) == whole);
      CHECK(digest_of({.cuts = {1},
                       .backward = Way::Backward::in_halves,
                       .keep = Keep::input,
                       .short_rows = 0,
                       .threads = 2}) == whole);
    }
}

TEST_CASE("additions with dropout have the slopes of their losses", "[models]") {
  for (const auto& [kind, options] : {std::pair{"gpt2", small_gpt2()}, {"llama", small_llama()}}) {
    const auto dropping = with_rate(kind, options, {"*"}), whole = with_lora(kind, options, {"*"});
    const auto weights = drawn_weights(dropping);
    const auto mean = [&](const std::map<std::string, std::vector<double>>& at) {
      double sum = 0;
      const auto losses = pass(dropping, at).losses;
      for (const float loss : losses) sum += static_cast<double>(loss);
      return sum / static_cast<double>(losses.size());
    };
    const auto found = pass(dropping, weights);
    CHECK(found.losses != pass(whole, weights).losses);
    for (const auto& [name, gradient] : found.gradients) {
      // Along the gradient, where rounding counts least.
      double square = 0;
      for (const double number : gradient) square += number * number;
      if (square < 1e-8) continue;
      constexpr double step = 0.02;
      auto above = weights, below = weights;
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        above[name][i] += step * gradient[i] / std::sqrt(square);
        below[name][i] -= step * gradient[i] / std::sqrt(square);
      }
      CAPTURE(kind, name);
      CHECK((mean(above) - mean(below)) / (2 * step) ==
            Approx(std::sqrt(square)).epsilon(0.03).margin(2e-4));
    }
  }
}
