#include <array>
#include <utility>

#include "models/kinds/kinds.h"
#include "models/kinds/options.h"
#include "models/layers/cross_entropy.h"
#include "models/layers/dropout.h"
#include "models/layers/linear.h"
#include "models/layers/residual_stream.h"
#include "models/layers/rms_norm.h"
#include "models/layers/rotary_attention.h"
#include "models/layers/sequence.h"
#include "models/layers/swiglu.h"
#include "models/layers/token_embedding.h"

namespace troupe::models {
namespace {

struct Llama {
  std::int64_t vocab, context, width, layers, heads, kv_heads, ffn;
  double theta, eps, dropout;
  std::string head;  // The parameter that maps to logits.

  Parameter matrix(const std::string& name, std::int64_t inputs, std::int64_t outputs) const {
    return {.name = name + ".weight",
            .shape = {outputs, inputs},
            .init = Init::normal(0.02),
            .use = Parameter::Use::matrix};
  }
  LayerPtr linear(const std::string& name, std::int64_t inputs, std::int64_t outputs) const {
    return std::make_unique<const Linear>(matrix(name, inputs, outputs));
  }
  NormPtr norm(const std::string& name) const {
    return std::make_unique<const RmsNorm>(name, width, static_cast<float>(eps));
  }
  LayerPtr drop(std::int64_t operation) const {
    return std::make_unique<const Dropout>(dropout, static_cast<std::uint32_t>(operation));
  }

  LayerPtr embedding() const {
    return std::make_unique<const TokenEmbedding>(Parameter{.name = "model.embed_tokens.weight",
                                                            .shape = {vocab, width},
                                                            .init = Init::normal(0.02),
                                                            .place = Parameter::Place::edge});
  }

  LayerPtr attention(const std::string& name) const {
    const auto head_width = width / heads;
    return std::make_unique<const RotaryAttention>(
        RotaryAttention::Heads{
            .queries = heads, .keys = kv_heads, .width = head_width, .theta = theta},
        RotaryAttention::Projections{
            .query = matrix(name + ".q_proj", width, width),
            .key = matrix(name + ".k_proj", width, kv_heads * head_width),
            .value = matrix(name + ".v_proj", width, kv_heads * head_width)});
  }

  LayerPtr block(std::int64_t index) const {
    const auto name = "model.layers." + std::to_string(index);
    return residual_stream(
        {norm(name + ".input_layernorm"),
         in_sequence(attention(name + ".self_attn"),
                     linear(name + ".self_attn.o_proj", width, width), drop(2 * index))},
        {norm(name + ".post_attention_layernorm"),
         in_sequence(std::make_unique<const SwiGlu>(matrix(name + ".mlp.gate_proj", width, ffn),
                                                    matrix(name + ".mlp.up_proj", width, ffn)),
                     linear(name + ".mlp.down_proj", ffn, width), drop(2 * index + 1))});
  }

  LayerPtr ending() const {
    return in_sequence(norm("model.norm"),
                       std::make_unique<const Linear>(Parameter{.name = head,
                                                                .shape = {vocab, width},
                                                                .init = Init::normal(0.02),
                                                                .use = Parameter::Use::matrix,
                                                                .place = Parameter::Place::edge}));
  }
};

/// Returns two thirds of four times the width, rounded up to a multiple of 256.
std::int64_t usual_ffn(std::int64_t width) { return (8 * width / 3 + 255) / 256 * 256; }

Result<Model> build_llama(const Value& options) {
  Llama llama{.vocab = integer(options, "vocab"),
              .context = integer(options, "context"),
              .width = integer(options, "width"),
              .layers = integer(options, "layers"),
              .heads = integer(options, "heads"),
              .kv_heads = integer(options, "kv_heads"),
              .ffn = integer(options, "ffn"),
              .theta = number(options, "rope_theta"),
              .eps = number(options, "norm_eps"),
              .dropout = number(options, "dropout"),
              .head = boolean(options, "tied") ? "model.embed_tokens.weight" : "lm_head.weight"};
  if (llama.kv_heads == 0) llama.kv_heads = llama.heads;
  if (llama.ffn == 0) llama.ffn = usual_ffn(llama.width);
  Value complete = options;
  complete.set("kv_heads", llama.kv_heads);
  if (auto divides = check_divides(complete, "heads", "width"); !divides) return divides.error();
  if (auto divides = check_divides(complete, "kv_heads", "heads"); !divides) return divides.error();
  if (llama.width / llama.heads % 2 != 0)
    return Error{"model.width = " + std::to_string(llama.width) + " / model.heads = " +
                 std::to_string(llama.heads) + " (= " + std::to_string(llama.width / llama.heads) +
                 ") is odd, but positions rotate pairs of numbers; choose an even width of a head"};

  Model model{
      .kind = "llama",
      .units = {},
      .loss = std::make_unique<const CrossEntropy>(),
      .sample = {.input = {llama.context}, .input_type = DType::i32, .target = {llama.context}},
      .classes = llama.vocab};
  for (std::int64_t i = 0; i < llama.layers; ++i) {
    auto layer = llama.block(i);
    if (i == 0) layer = in_sequence(llama.embedding(), std::move(layer));
    if (i + 1 == llama.layers) layer = in_sequence(std::move(layer), llama.ending());
    model.units.push_back({"model.layers." + std::to_string(i), std::move(layer)});
  }
  return model;
}

}  // namespace

BuiltInKind llama() {
  static const std::array options{
      option::vocab(),
      option::context(),
      option::width(),
      option::layers(),
      option::heads(),
      Option{.name = "kv_heads",
             .fallback = 0,
             .least = 0,
             .most = 4096,
             .help = "Key and value heads (grouped-query attention); 0 means as many as heads."},
      Option{.name = "ffn",
             .fallback = 0,
             .least = 0,
             .most = 1 << 20,
             .help = "Hidden size of the feed-forward networks; 0 means 8/3 of width, rounded up "
                     "to a multiple of 256."},
      Option{.name = "rope_theta",
             .type = Option::Type::number,
             .fallback = 10000.0,
             .least = 1,
             .most = 1e9,
             .help = "Base of the rotary position embedding (RoPE theta)."},
      Option{.name = "norm_eps",
             .type = Option::Type::number,
             .fallback = 1e-5,
             .least = 1e-12,
             .most = 1,
             .help = "Epsilon of RMSNorm."},
      Option{.name = "tied",
             .type = Option::Type::boolean,
             .fallback = false,
             .help = "Share input and output embeddings."},
      option::dropout("Dropout probability after each attention and each feed-forward network.")};
  return {.name = "llama",
          .help =
              "Llama: a causal transformer with rotary position embeddings and gated feed-forward "
              "networks.",
          .options = options,
          .build = build_llama};
}

}  // namespace troupe::models
