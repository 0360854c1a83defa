// Steps of transformer blocks: attention and feed-forward networks.
#include <utility>

#include "models/description/projections.h"
#include "models/description/step_kind.h"
#include "models/layers/feed_forward.h"
#include "models/layers/gelu.h"
#include "models/layers/linear.h"
#include "models/layers/rotary_attention.h"
#include "models/layers/self_attention.h"
#include "models/layers/swiglu.h"

namespace troupe::models {
namespace {

using Type = StepOption::Type;
using Presence = StepOption::Presence;

StepOption out_init_option() {
  return {.name = "out_init",
          .type = Type::init,
          .help = "How the last projection begins. Default: as init says."};
}

/// Returns the init of the last projection.
std::optional<Init> out_init(const StepOptions& options) {
  return options.has("out_init") ? options.init("out_init") : options.init("init");
}

// attention

Status check_fused(const StepOptions& options) {
  if (options.has("rope")) return Error{"rotates no positions (rope) in one fused projection"};
  if (options.has("kv_heads")) return Error{"has as many kv_heads as heads in a fused projection"};
  return Done{};
}

Status check_rotary(const StepOptions& options, std::int64_t head_width) {
  const auto heads = options.integer("heads");
  const auto kv_heads = options.integer_or("kv_heads", heads);
  if (!options.has("rope"))
    return Error{"with four projections rotates positions; give rope, the base, such as 10000"};
  if (options.text("mask") != "causal") return Error{"with four projections has a causal mask"};
  if (options.boolean("bias")) return Error{"with four projections has no biases"};
  if (heads % kv_heads != 0)
    return Error{"has " + std::to_string(heads) + " heads, which " + std::to_string(kv_heads) +
                 " kv_heads do not divide"};
  if (head_width % 2 != 0)
    return Error{"rotates pairs of numbers, but a head has " + std::to_string(head_width)};
  return Done{};
}

Result<Flow> check_attention(const StepOptions& options, const Flow& input) {
  if (!is_sequence(input)) return not_taken("a sequence of rows", input);
  const auto heads = options.integer("heads");
  if (input.width() % heads != 0)
    return Error{"has " + std::to_string(heads) + " heads, which do not divide " + to_text(input)};
  const auto projections = options.texts("proj").size();
  if (projections != 2 && projections != 4)
    return Error{
        "takes two projections (query, key and value in one; output), or four (query; "
        "key; value; output), and gets " +
        std::to_string(projections)};
  if (auto good =
          projections == 2 ? check_fused(options) : check_rotary(options, input.width() / heads);
      !good)
    return good.error();
  return input;
}

void build_rotary(const StepContext& context, const std::vector<std::string>& names) {
  const auto& options = context.options;
  const auto width = context.input.width(), heads = options.integer("heads");
  const auto kv_heads = options.integer_or("kv_heads", heads), head_width = width / heads;
  const auto projection = [&](std::size_t index, std::int64_t outputs) {
    return matrix(options, context.name + "." + names[index], {width, outputs},
                  options.init("init"));
  };
  context.add(std::make_unique<const RotaryAttention>(
      RotaryAttention::Heads{
          .queries = heads, .keys = kv_heads, .width = head_width, .theta = options.number("rope")},
      RotaryAttention::Projections{.query = projection(0, width),
                                   .key = projection(1, kv_heads * head_width),
                                   .value = projection(2, kv_heads * head_width)}));
}

void build_attention(const StepContext& context) {
  const auto& options = context.options;
  const auto names = options.texts("proj");
  const auto width = context.input.width();
  const bool with_bias = options.boolean("bias");
  if (names.size() == 4) {
    build_rotary(context, names);
  } else {
    add_linear(context, context.name + "." + names.front(), {width, 3 * width}, with_bias,
               options.init("init"));
    context.add(std::make_unique<const SelfAttention>(
        options.integer("heads"),
        options.text("mask") == "causal" ? kernels::Mask::causal : kernels::Mask::full));
  }
  add_linear(context, context.name + "." + names.back(), {width, width}, with_bias,
             out_init(options));
}

// feed_forward

Result<Flow> check_feed_forward(const StepOptions& options, const Flow& input) {
  if (!has_rows(input)) return not_taken("rows of numbers", input);
  const auto projections = options.texts("proj").size();
  if (projections != 2 && projections != 3)
    return Error{"takes two projections (up, down), or three (gate, up, down), and gets " +
                 std::to_string(projections)};
  const bool is_gated = projections == 3;
  if (is_gated != (options.text("activation") == "silu"))
    return Error{is_gated ? "with three projections has the activation silu"
                          : "with two projections has the activation gelu or gelu_tanh"};
  if (is_gated == options.boolean("bias"))
    return Error{is_gated ? "with three projections has no biases"
                          : "with two projections has biases"};
  return input;
}

void build_feed_forward(const StepContext& context) {
  const auto& options = context.options;
  const auto names = options.texts("proj");
  const auto width = context.input.width(), hidden = options.integer("hidden");
  const auto name = [&](std::size_t index) { return context.name + "." + names[index]; };
  const auto up = [&](std::size_t index) {
    return matrix(options, name(index), {width, hidden}, options.init("init"));
  };
  if (names.size() == 3) {
    context.add(std::make_unique<const SwiGlu>(up(0), up(1)));
    add_linear(context, name(2), {hidden, width}, false, out_init(options));
    return;
  }
  const auto init = options.init("init"), last = out_init(options);
  const auto form = options.text("activation") == "gelu" ? kernels::Gelu::erf : kernels::Gelu::tanh;
  FeedForward::Part first{up(0), bias(name(0), {width, hidden}, init)};
  FeedForward::Part second{matrix(options, name(1), {hidden, width}, last),
                           bias(name(1), {hidden, width}, last)};
  if (first.matrix.lora_rank == 0 && second.matrix.lora_rank == 0) {
    context.add(std::make_unique<const FeedForward>(std::move(first), std::move(second), form));
    return;
  }
  // Its fused products have no place for an addition.
  context.add(std::make_unique<const Linear>(std::move(first.matrix), std::move(first.bias)));
  context.add(std::make_unique<const Gelu>(form));
  context.add(std::make_unique<const Linear>(std::move(second.matrix), std::move(second.bias)));
}

}  // namespace

std::vector<StepKind> kinds_for_blocks() {
  const StepOption proj{.name = "proj",
                        .type = Type::texts,
                        .help = "The names of the projections.",
                        .presence = Presence::required};
  return {
      {.name = "attention",
       .help = "Self attention. With two names in proj, query, key and value come from one "
               "projection; with four, each has its own, and positions are rotated.",
       .options = {proj,
                   size_option("heads", "The heads; they divide the width."),
                   {.name = "kv_heads",
                    .help = "The heads of keys and values. Default: as many as heads.",
                    .least = 1,
                    .most = 1 << 24},
                   {.name = "mask",
                    .type = Type::choice,
                    .help = "Whether a position sees only itself and those before it (causal).",
                    .fallback = "causal",
                    .among = {"causal", "full"}},
                   {.name = "rope",
                    .type = Type::number,
                    .help = "The base of the rotation. Default: none.",
                    .least = 1},
                   boolean_option("bias", "Whether the projections have biases.", false),
                   layout_option(),
                   init_option(),
                   out_init_option()},
       .check = check_attention,
       .build = build_attention},
      {.name = "feed_forward",
       .help = "Two projections with an activation between them; with three, the activation of "
               "the first gates the second.",
       .options = {proj,
                   size_option("hidden", "The width between the projections."),
                   {.name = "activation",
                    .type = Type::choice,
                    .help = "The activation. gelu_tanh is the approximation that GPT-2 has.",
                    .presence = Presence::required,
                    .among = {"gelu", "gelu_tanh", "silu"}},
                   boolean_option("bias", "Whether the projections have biases.", false),
                   layout_option(),
                   init_option(),
                   out_init_option()},
       .check = check_feed_forward,
       .build = build_feed_forward},
  };
}

}  // namespace troupe::models
