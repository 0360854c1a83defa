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
    return last(
        stage.continue_text(stream, *weights, {part(text.tokens, count), count}, text).stream);
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
      const Bundle between = front.continue_text(writer.stream, *first, {tokens, count}, before);
      CHECK((writer.last(
                 back.continue_text(writer.stream, *second, {between, count}, behind).stream) ==
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
          writer.stage.continue_text(writer.stream, *writer.weights, {writer.part(20, 1), 1}, text)
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
  for (const Model& model : text_models()) CHECK(model.continues_from(0));
  int others = 0;
  for (const Model& model : small_models())
    if (model.kind == "vit" || model.kind == "resnet" || model.kind == "pair") {
      ++others;
      CHECK_FALSE(model.continues_from(0));
    }
  CHECK(others == 3);
}

namespace {

constexpr std::int64_t most_written = 140;

/// Returns T5 with and without what 1.1 changed.
std::vector<Model> decoders() {
  std::vector<Model> models;
  for (const bool tied : {true, false})
    for (const bool gated : {false, true}) {
      Value options;
      for (const auto& [key, value] : Options{{"vocab", 70},
                                              {"source", 600},
                                              {"target", most_written},
                                              {"width", 48},
                                              {"layers", 2},
                                              {"decoder_layers", 3},
                                              {"heads", 4},
                                              {"head_width", 20},
                                              {"ffn", 80},
                                              {"tied", tied},
                                              {"gated", gated},
                                              {"scaled", tied != gated}})
        options.set(key, value);
      models.push_back(build("t5", options));
    }
  return models;
}

/// A decoder with random weights, and what its encoder made of a text.
struct DecoderWriter {
  MemoryPool memory;
  Stream stream;
  const Model& model;
  int first;  // The unit with which the decoder begins.
  Stage decoder;
  WeightsPtr weights;
  Bundle encoded;
  Tensor tokens;
  std::int64_t source;

  DecoderWriter(const Model& given, std::int64_t length, int threads = 1,
                kernels::Precision precision = kernels::Precision::fp32)
      : stream(memory, threads),
        model(given),
        first(model.kept[2].first),
        decoder(model, {first, static_cast<int>(model.units.size())}, {.precision = precision}),
        source(length) {
    const auto initial = [&](const Stage& stage) {
      return Optimizer({}, stage.parameters(), stage.buffers(), precision).initial(stream, 3);
    };
    weights = initial(decoder);
    const Batch batch = made_batch(stream, model, 1, 5);
    tokens = batch.more[2].reshaped({most_written, 1});
    Bundle inputs(batch.input.reshaped({600, 1}).slice(0, source).reshaped({1, source}));
    inputs.kept = {spans(source), spans(1), part(0, 1)};
    Stage encoder(model, {0, first}, {.precision = precision});
    encoded = encoder.evaluate(stream, *initial(encoder), std::move(inputs));
  }

  Tensor part(std::int64_t begin, std::int64_t count) const {
    return tokens.slice(begin, count).reshaped({1, count});
  }
  Tensor spans(std::int64_t rows) {
    Tensor made = stream.make({1, rows, 2}, DType::i32);
    for (std::int64_t i = 0; i < rows; ++i) {
      made.data<std::int32_t>()[2 * i] = 0;
      made.data<std::int32_t>()[2 * i + 1] = static_cast<std::int32_t>(source);
    }
    return made;
  }
  /// Returns what the decoder's first unit receives.
  Bundle of_tokens(std::int64_t begin, std::int64_t count) {
    Bundle bundle = encoded;
    bundle.kept = {spans(count), part(begin, count)};
    return bundle;
  }
  std::vector<float> last(const Tensor& logits) const {
    return {logits.f32() + logits.count() - model.classes, logits.f32() + logits.count()};
  }
  std::vector<float> whole(std::int64_t length) {
    return last(decoder.evaluate(stream, *weights, of_tokens(0, length)).stream);
  }
  std::vector<float> next(ContinuedText& text, std::int64_t count) {
    return last(
        decoder.continue_text(stream, *weights, {of_tokens(text.tokens, count), count}, text)
            .stream);
  }
};

}  // namespace

TEST_CASE("a decoder's text has the bits of passes over all of it", "[models]") {
  for (const Model& model : decoders())
    for (const std::int64_t source : {1, 33, 600}) {
      CAPTURE(source);
      REQUIRE(model.kept[2].name == "decoder_tokens");
      DecoderWriter writer(model, source, 2);
      CHECK(model.continues_from(writer.first, {1, 2}));
      std::vector<std::vector<float>> wanted;
      for (std::int64_t length = 1; length <= most_written; ++length)
        wanted.push_back(writer.whole(length));
      for (const std::int64_t prompt : {1, 2, 33}) {
        auto text = writer.decoder.begin_text(most_written);
        bool all_equal = true;
        while (text.tokens < most_written) {
          const auto logits = writer.next(text, text.tokens == 0 ? prompt : 1);
          all_equal = all_equal && logits == wanted[static_cast<std::size_t>(text.tokens - 1)];
        }
        CHECK(all_equal);
      }
    }
}

TEST_CASE("a decoder's text continues in 16 bits with the bits of passes over all of it",
          "[models]") {
  for (const auto precision : {kernels::Precision::fp16_chain, kernels::Precision::bf16_pairs,
                               kernels::Precision::bf16_blocks})
    for (const Model& model : decoders()) {
      DecoderWriter writer(model, 70, 1, precision);
      auto text = writer.decoder.begin_text(most_written);
      for (const std::int64_t count : {1, 1, 30, 1, 1, 3, 1}) {
        const auto logits = writer.next(text, count);
        CHECK((logits == writer.whole(text.tokens)));
      }
    }
}

TEST_CASE("a wrong position, memory or cache changes a decoder's text", "[models]") {
  for (const Model& model : decoders()) {
    DecoderWriter writer(model, 70);
    const auto after = [&](auto harm) {
      auto text = writer.decoder.begin_text(40);
      writer.next(text, 20);
      harm(text);
      const std::int64_t count = 1;
      return writer.last(
          writer.decoder
              .continue_text(writer.stream, *writer.weights, {writer.of_tokens(20, 1), count}, text)
              .stream);
    };
    const auto right = after([](ContinuedText&) {});
    CHECK((right == writer.whole(21)));
    CHECK((after([](ContinuedText& text) { --text.tokens; }) != right));
    // The caches of a block are those of its own tokens, and those of the source.
    CHECK((after([](ContinuedText& text) { std::swap(text.caches[0], text.caches[2]); }) != right));
    CHECK((after([](ContinuedText& text) { std::swap(text.caches[1], text.caches[3]); }) != right));
    CHECK((after([](ContinuedText& text) { text.caches[1].f32()[0] += 0.5f; }) != right));
  }
}

TEST_CASE("the source's keys and values are made once", "[models]") {
  const Model model = std::move(decoders()[0]);
  DecoderWriter writer(model, 70);
  auto text = writer.decoder.begin_text(40);
  writer.next(text, 1);
  const auto wanted = writer.whole(2);
  Tensor& memory = writer.encoded.stream;
  std::fill_n(memory.f32(), memory.count(), 0.25f);
  CHECK((writer.next(text, 1) == wanted));
}

TEST_CASE("a model continues no text that its other inputs depend on", "[models]") {
  const Model model = std::move(decoders()[0]);
  const int decoder = model.kept[2].first;
  CHECK(model.continues_from(decoder, {1, 2}));
  CHECK_FALSE(model.continues_from(0));             // The source is the text.
  CHECK_FALSE(model.continues_from(0, {1, 2}));     // The encoder sees later rows.
  CHECK_FALSE(model.continues_from(decoder, {2}));  // A row of spans for each token is missing.
  CHECK_FALSE(model.continues_from(decoder, {1}));  // The tokens do not grow.
}
