// Measures what a token of a text costs, in processor time of one thread: with caches, as `troupe
// sample` computes it, and by a pass over the whole text.
//
//     ./dev bench sample [EVERY]
//
// Weights are random, and each token is the likeliest one. Every EVERY-th token (default 16) is
// computed by a pass, too, and has to have equal bits.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>
#include <utility>
#include <vector>

#include "config/model_kinds.h"
#include "core/memory/memory_pool.h"
#include "core/memory/stream.h"
#include "models/train/optimizer.h"
#include "models/train/stage.h"

using namespace troupe;
using namespace troupe::models;

namespace {

struct Case {
  const char* name;
  const char* kind;
  std::int64_t tokens;
  std::initializer_list<std::pair<const char*, std::int64_t>> options;
};

double seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

Tensor filled_tokens(Stream& stream, const std::vector<std::int32_t>& tokens) {
  Tensor made = stream.make({1, std::ssize(tokens)}, DType::i32);
  std::ranges::copy(tokens, made.data<std::int32_t>());
  return made;
}

/// Returns a row for each token, which looks at all of the source.
Tensor spans(Stream& stream, std::int64_t rows, std::int64_t source) {
  Tensor made = stream.make({1, rows, 2}, DType::i32);
  for (std::int64_t i = 0; i < rows; ++i) {
    made.data<std::int32_t>()[2 * i] = 0;
    made.data<std::int32_t>()[2 * i + 1] = static_cast<std::int32_t>(source);
  }
  return made;
}

/// The units that write, with random weights, and what they receive besides the text.
class Writer {
 public:
  explicit Writer(const Model& model)
      : model_(model),
        has_encoder_(!model.sample.more.empty()),
        first_(has_encoder_ ? model.kept[decoder_tokens].first : 0),
        stage_(model, {first_, static_cast<int>(model.units.size())}, {}),
        weights_(initial(stage_)) {
    if (!has_encoder_) return;
    const Stage encoder(model, {0, first_}, {});
    const auto length = model.sample.input[0];
    std::vector<std::int32_t> source(static_cast<std::size_t>(length));
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::int32_t>(i % 97);
    Bundle inputs(filled_tokens(stream_, source));
    inputs.kept = {spans(stream_, length, length), spans(stream_, 1, length),
                   filled_tokens(stream_, {0})};
    encoded_ = encoder.evaluate(stream_, *initial(encoder), std::move(inputs)).stream;
  }

  const Stage& stage() const { return stage_; }
  std::vector<float> pass(const std::vector<std::int32_t>& text) {
    return last(stage_.evaluate(stream_, *weights_, bundle(text)));
  }
  std::vector<float> next(std::int32_t token, ContinuedText& text) {
    return last(stage_.continue_text(stream_, *weights_, {bundle({token}), 1}, text));
  }

 private:
  static constexpr std::size_t decoder_tokens = 2;  // Its place in the inputs of t5.

  WeightsPtr initial(const Stage& stage) {
    return Optimizer({}, stage.parameters(), stage.buffers(), kernels::Precision::fp32)
        .initial(stream_, 3);
  }
  Bundle bundle(const std::vector<std::int32_t>& text) {
    if (!has_encoder_) return filled_tokens(stream_, text);
    Bundle made(encoded_);
    made.kept = {spans(stream_, std::ssize(text), encoded_.shape()[1]),
                 filled_tokens(stream_, text)};
    return made;
  }
  std::vector<float> last(const Bundle& logits) const {
    const float* const end = logits.stream.f32() + logits.stream.count();
    return {end - model_.classes, end};
  }

  MemoryPool memory_;
  Stream stream_{memory_};
  const Model& model_;
  bool has_encoder_;
  int first_;
  Stage stage_;
  WeightsPtr weights_;
  Tensor encoded_;
};

int measure(const Case& measured, std::int64_t every) {
  Value options = Value::Map{};
  for (const auto& [name, number] : measured.options) options.set(name, number);
  options.set("kind", measured.kind);
  const auto model = config::model_from(options);
  if (!model) {
    std::fprintf(stderr, "%s: %s\n", measured.name, model.error().text.c_str());
    return 1;
  }
  Writer writer(*model);
  auto text = writer.stage().begin_text(measured.tokens);
  std::vector<std::int32_t> tokens{0};
  double with_caches = 0, by_passes = 0;
  std::int64_t passes = 0;
  for (std::int64_t i = 0; i < measured.tokens; ++i) {
    const double begin = seconds();
    const auto logits = writer.next(tokens.back(), text);
    with_caches += seconds() - begin;
    if (i % every == every - 1) {
      const double before = seconds();
      const auto whole = writer.pass(tokens);
      by_passes += seconds() - before;
      ++passes;
      if (std::memcmp(whole.data(), logits.data(), logits.size() * sizeof(float)) != 0) {
        std::fprintf(stderr, "%s: token %lld has other bits\n", measured.name,
                     static_cast<long long>(i));
        return 1;
      }
    }
    tokens.push_back(static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin()));
  }
  with_caches /= static_cast<double>(measured.tokens);
  by_passes /= static_cast<double>(passes);
  std::printf("%-10s %4lld tokens  %8.2f ms a token with caches  %8.2f ms by passes  %6.1f times\n",
              measured.name, static_cast<long long>(measured.tokens), 1e3 * with_caches,
              1e3 * by_passes, by_passes / with_caches);
  std::fflush(stdout);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::int64_t every = count > 1 ? std::max(1L, std::atol(words[1])) : 16;
  const Case cases[] = {
      {"gpt-small",
       "gpt2",
       256,
       {{"vocab", 4096}, {"context", 256}, {"width", 384}, {"layers", 6}, {"heads", 6}}},
      {"gpt2",
       "gpt2",
       512,
       {{"vocab", 50257}, {"context", 512}, {"width", 768}, {"layers", 12}, {"heads", 12}}},
      {"t5-small",
       "t5",
       128,
       {{"vocab", 32128},
        {"source", 256},
        {"target", 128},
        {"width", 512},
        {"layers", 6},
        {"heads", 8},
        {"ffn", 2048}}},
  };
  int failed = 0;
  for (const Case& measured : cases) failed += measure(measured, every);
  return failed;
}
