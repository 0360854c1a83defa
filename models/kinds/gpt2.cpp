#include <array>
#include <cmath>
#include <utility>

#include "models/kinds/kinds.h"
#include "models/kinds/options.h"
#include "models/layers/cross_entropy.h"
#include "models/layers/dropout.h"
#include "models/layers/feed_forward.h"
#include "models/layers/layer_norm.h"
#include "models/layers/linear.h"
#include "models/layers/position_embedding.h"
#include "models/layers/residual_stream.h"
#include "models/layers/self_attention.h"
#include "models/layers/sequence.h"
#include "models/layers/token_embedding.h"

namespace troupe::models {
namespace {

constexpr float eps = 1e-5f;
constexpr double deviation = 0.02;

struct Gpt2 {
  std::int64_t vocab, context, width, layers, heads;
  double dropout;
  std::string head;  // The parameter that maps to logits.

  /// Hugging Face stores GPT-2's matrices as [inputs, outputs], as TensorFlow did.
  static FeedForward::Part part(const std::string& name, std::int64_t inputs, std::int64_t outputs,
                                double init) {
    return {.matrix = {.name = name + ".weight",
                       .shape = {inputs, outputs},
                       .init = Init::normal(init),
                       .use = Parameter::Use::matrix,
                       .layout = kernels::WeightLayout::in_out},
            .bias = {.name = name + ".bias", .shape = {outputs}}};
  }
  static LayerPtr linear(const std::string& name, std::int64_t inputs, std::int64_t outputs,
                         double init) {
    auto [matrix, bias] = part(name, inputs, outputs, init);
    return std::make_unique<const Linear>(std::move(matrix), std::move(bias));
  }
  NormPtr norm(const std::string& name) const {
    return std::make_unique<const LayerNorm>(name, width, eps);
  }
  LayerPtr drop(std::int64_t operation) const {
    return std::make_unique<const Dropout>(dropout, static_cast<std::uint32_t>(operation));
  }

  LayerPtr embedding() const {
    return in_sequence(
        std::make_unique<const TokenEmbedding>(Parameter{.name = "wte.weight",
                                                         .shape = {vocab, width},
                                                         .init = Init::normal(deviation),
                                                         .place = Parameter::Place::edge}),
        std::make_unique<const PositionEmbedding>(Parameter{.name = "wpe.weight",
                                                            .shape = {context, width},
                                                            .init = Init::normal(deviation),
                                                            .place = Parameter::Place::edge}),
        drop(0));
  }

  LayerPtr block(std::int64_t index) const {
    const auto name = "h." + std::to_string(index);
    // Scale down what 2 * layers sublayers add to the residual stream, so that it does not grow.
    const double added = deviation / std::sqrt(2.0 * static_cast<double>(layers));
    return residual_stream(
        {norm(name + ".ln_1"),
         in_sequence(linear(name + ".attn.c_attn", width, 3 * width, deviation),
                     std::make_unique<const SelfAttention>(heads, kernels::Mask::causal),
                     linear(name + ".attn.c_proj", width, width, added), drop(1 + 2 * index))},
        {norm(name + ".ln_2"),
         in_sequence(std::make_unique<const FeedForward>(
                         part(name + ".mlp.c_fc", width, 4 * width, deviation),
                         part(name + ".mlp.c_proj", 4 * width, width, added), kernels::Gelu::tanh),
                     drop(2 + 2 * index))});
  }

  LayerPtr ending() const {
    return in_sequence(norm("ln_f"),
                       std::make_unique<const Linear>(Parameter{.name = head,
                                                                .shape = {vocab, width},
                                                                .init = Init::normal(deviation),
                                                                .use = Parameter::Use::matrix,
                                                                .place = Parameter::Place::edge}));
  }
};

Result<Model> build_gpt2(const Value& options) {
  if (auto divides = check_divides(options, "heads", "width"); !divides) return divides.error();
  const Gpt2 gpt{.vocab = integer(options, "vocab"),
                 .context = integer(options, "context"),
                 .width = integer(options, "width"),
                 .layers = integer(options, "layers"),
                 .heads = integer(options, "heads"),
                 .dropout = number(options, "dropout"),
                 .head = boolean(options, "tied") ? "wte.weight" : "lm_head.weight"};
  Model model{.kind = "gpt2",
              .units = {},
              .loss = std::make_unique<const CrossEntropy>(),
              .sample = {.input = {gpt.context}, .input_type = DType::i32, .target = {gpt.context}},
              .classes = gpt.vocab};
  for (std::int64_t i = 0; i < gpt.layers; ++i) {
    auto layer = gpt.block(i);
    if (i == 0) layer = in_sequence(gpt.embedding(), std::move(layer));
    if (i + 1 == gpt.layers) layer = in_sequence(std::move(layer), gpt.ending());
    model.units.push_back({"h." + std::to_string(i), std::move(layer)});
  }
  return model;
}

}  // namespace

BuiltInKind gpt2() {
  static const std::array options{option::vocab(),
                                  option::context(),
                                  option::width(),
                                  option::layers(),
                                  option::heads(),
                                  Option{.name = "tied",
                                         .type = Option::Type::boolean,
                                         .fallback = true,
                                         .help = "Share input and output embeddings."},
                                  option::dropout("Dropout probability after the embedding, each "
                                                  "attention and each feed-forward network.")};
  return {.name = "gpt2",
          .help = "GPT-2: a causal transformer with learned position embeddings.",
          .options = options,
          .build = build_gpt2};
}

}  // namespace troupe::models
