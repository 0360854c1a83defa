// A text that a stage continues has the bits of passes over all of it.

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "training.h"

using namespace troupe;
using namespace troupe::models;

namespace {

constexpr std::int64_t context = 600;

using Options = std::vector<std::pair<std::string, Value>>;

Model text_model(const std::string& kind, const Options& more) {
  Value options;
  for (const auto& [key, value] :
       Options{{"vocab", 70}, {"context", context}, {"width", 48}, {"layers", 2}, {"heads", 4}})
    options.set(key, value);
  for (const auto& [key, value] : more) options.set(key, value);
  return build(kind, options);
}

/// Returns models of all kinds that write texts, with a context above the blocks of their kernels.
std::vector<Model> text_models() {
  std::vector<Model> models;
  models.push_back(text_model("gpt2", {{"tied", false}}));
  models.push_back(text_model("llama", {{"kv_heads", 2}, {"ffn", 80}}));
  models.push_back(text_model(
      "llama", {{"kv_heads", 1}, {"window", 513}, {"qk_norm", true}, {"qkv_bias", true}}));
  models.push_back(text_model("gpt_neox", {{"rotary", 0.5}}));
  models.push_back(text_model("gptj", {{"rotary", 4}}));
  models.push_back(text_model("phi", {}));
  models.push_back(text_model("gemma", {{"kv_heads", 2},
                                        {"head_width", 20},
                                        {"ffn", 80},
                                        {"window", 40},
                                        {"post_norms", true},
                                        {"score_cap", 2.0},
                                        {"logit_cap", 3.0}}));
  models.push_back(text_model("mixtral", {{"kv_heads", 2}, {"ffn", 80}, {"experts", 5}}));
  return models;
}

/// A model with random weights, and a text.
struct Writer {
  MemoryPool memory;
  Stream stream;
  const Model& model;
  Stage stage;
  WeightsPtr weights;
  Tensor tokens;

  explicit Writer(const Model& given, int threads = 1,
                  kernels::Precision precision = kernels::Precision::fp32)
      : stream(memory, threads),
        model(given),
        stage(model, {0, static_cast<int>(model.units.size())}, {.precision = precision}) {
    const Optimizer optimizer({}, stage.parameters(), stage.buffers(), precision);
    weights = optimizer.initial(stream, 3);
    tokens = made_batch(stream, model, 1, 5).input;
  }

  Tensor part(std::int64_t first, std::int64_t count) const {
    return tokens.reshaped({tokens.count(), 1}).slice(first, count).reshaped({1, count});
  }
  std::vector<float> last(const Tensor& logits) const {
    return {logits.f32() + logits.count() - model.classes, logits.f32() + logits.count()};
  }
  std::vector<float> whole(std::int64_t length) {
    return last(stage.evaluate(stream, *weights, part(0, length)).stream);
  }
  std::vector<float> next(ContinuedText& text, std::int64_t count) {
    return last(stage.continue_text(stream, *weights, part(text.tokens, count), text).stream);
  }
};

}  // namespace

TEST_CASE("a continued text has the bits of passes over all of it", "[models]") {
  for (const Model& model : text_models()) {
    CAPTURE(model.kind);
    Writer writer(model, 2);
    for (const std::int64_t prompt : {1, 2, 63, 64, 65, 128, 511, 512, 513}) {
      CAPTURE(prompt);
      auto text = writer.stage.begin_text(context);
      CHECK((writer.next(text, prompt) == writer.whole(prompt)));
      for (int i = 0; i < 3; ++i) {
        const auto logits = writer.next(text, 1);
        CHECK((logits == writer.whole(text.tokens)));
      }
    }
  }
}

TEST_CASE("a text continues token by token up to the context", "[models]") {
  for (const Model& model : text_models()) {
    CAPTURE(model.kind);
    Writer writer(model);
    auto text = writer.stage.begin_text(context);
    while (text.tokens < context) {
      const auto logits = writer.next(text, 1);
      const auto n = text.tokens;
      if (n < 4 || n % 64 < 2 || n % 509 < 5 || n == context) {
        CAPTURE(n);
        CHECK((logits == writer.whole(n)));
      }
    }
    Writer other(model);
    auto at_once = other.stage.begin_text(context);
    CHECK((other.next(at_once, context) == other.whole(context)));
  }
}

TEST_CASE("a text continues in 16 bits with the bits of passes over all of it", "[models]") {
  for (const auto precision : {kernels::Precision::fp16_chain, kernels::Precision::bf16_pairs,
                               kernels::Precision::bf16_blocks})
    for (const Model& model : text_models()) {
      CAPTURE(model.kind);
      Writer writer(model, 1, precision);
      auto text = writer.stage.begin_text(context);
      for (const std::int64_t count : {1, 1, 62, 1, 1, 64, 1}) {
        const auto logits = writer.next(text, count);
        CHECK((logits == writer.whole(text.tokens)));
      }
    }
}

TEST_CASE("stages of a pipeline continue a text as one stage does", "[models]") {
  for (const Model& model : text_models()) {
    CAPTURE(model.kind);
    Writer writer(model);
    const auto units = static_cast<int>(model.units.size());
    const Stage front(model, {0, 1}, {}), back(model, {1, units}, {});
    const auto weights_of = [&](const Stage& stage) {
      const Optimizer optimizer({}, stage.parameters(), stage.buffers(), kernels::Precision::fp32);
      return optimizer.initial(writer.stream, 3);
    };
    const auto first = weights_of(front), second = weights_of(back);
    auto text = writer.stage.begin_text(9), before = front.begin_text(9),
         behind = back.begin_text(9);
    for (const std::int64_t count : {4, 1, 1}) {
      const Tensor tokens = writer.part(text.tokens, count);
      const auto wanted = writer.next(text, count);
      const Bundle between = front.continue_text(writer.stream, *first, tokens, before);
      CHECK((writer.last(back.continue_text(writer.stream, *second, between, behind).stream) ==
             wanted));
    }
  }
}

TEST_CASE("a wrong position or another layer's cache changes a continued text", "[models]") {
  for (const Model& model : text_models()) {
    CAPTURE(model.kind);
    Writer writer(model);
    const auto after = [&](auto harm) {
      auto text = writer.stage.begin_text(40);
      writer.next(text, 20);
      harm(text);
      return writer.last(
          writer.stage.continue_text(writer.stream, *writer.weights, writer.part(20, 1), text)
              .stream);
    };
    const auto right = after([](ContinuedText&) {});
    CHECK((right == writer.whole(21)));
    CHECK((after([](ContinuedText& text) { --text.tokens; }) != right));
    CHECK((after([](ContinuedText& text) { std::swap(text.caches[0], text.caches[1]); }) != right));
  }
}

TEST_CASE("caches are allocated in the first pass, for the text and no more", "[models]") {
  const Model model = text_model("llama", {{"context", 131072}});
  Writer writer(model);
  auto text = writer.stage.begin_text(40);
  writer.next(text, 1);
  std::vector<const void*> places;
  std::size_t bytes = 0;
  for (const auto& cache : text.caches) {
    places.push_back(cache.raw());
    bytes += cache.bytes();
  }
  // The caches have 64 positions: keys of 12 numbers for each of 4 heads, and values in rows of 32.
  CHECK(bytes == std::size_t{2} * 64 * 4 * (12 + 32) * sizeof(float));
  while (text.tokens < 40) writer.next(text, 1);
  for (std::size_t i = 0; i < places.size(); ++i) CHECK(text.caches[i].raw() == places[i]);
}

TEST_CASE("models that see later rows, other samples or more inputs continue nothing", "[models]") {
  const auto continues = [](const Model& model) {
    return Stage(model, {0, static_cast<int>(model.units.size())}, {}).can_continue();
  };
  for (const Model& model : text_models()) CHECK(continues(model));
  int others = 0;
  for (const Model& model : small_models())
    if (model.kind == "vit" || model.kind == "resnet" || model.kind == "pair") {
      ++others;
      CHECK_FALSE(continues(model));
    }
  CHECK(others == 3);
}
