// Steps that compute tokens and rows of numbers.
#include <array>
#include <utility>

#include "models/description/step_kind.h"
#include "models/layers/dropout.h"
#include "models/layers/feed_forward.h"
#include "models/layers/images/class_token.h"
#include "models/layers/linear.h"
#include "models/layers/position_embedding.h"
#include "models/layers/relu.h"
#include "models/layers/rotary_attention.h"
#include "models/layers/self_attention.h"
#include "models/layers/swiglu.h"
#include "models/layers/token_embedding.h"

namespace troupe::models {
namespace {

using Type = StepOption::Type;
using Presence = StepOption::Presence;

constexpr double most_wide = 1 << 24;

StepOption layout_option() {
  return {.name = "layout",
          .type = Type::choice,
          .help =
              "How matrices are stored: [outputs, inputs] as in PyTorch (out_in), or [inputs, "
              "outputs] as in GPT-2 (in_out).",
          .fallback = "out_in",
          .among = {"out_in", "in_out"}};
}

StepOption out_init_option() {
  return {.name = "out_init",
          .type = Type::init,
          .help = "How the last projection begins. Default: as init says."};
}

kernels::WeightLayout layout_of(const StepOptions& options) {
  return options.text("layout") == "in_out" ? kernels::WeightLayout::in_out
                                            : kernels::WeightLayout::out_in;
}

bool has_rows(const Flow& input) { return input.kind == Flow::Kind::rows; }
bool is_sequence(const Flow& input) { return has_rows(input) && input.shape.rank() == 2; }

/// Returns the flow with another width.
Flow as_wide_as(const Flow& input, std::int64_t width) {
  Flow output;
  for (int i = 0; i + 1 < input.shape.rank(); ++i) output.shape.append(input.shape[i]);
  output.shape.append(width);
  return output;
}

struct Sizes {
  std::int64_t inputs, outputs;
};

Parameter matrix(const StepOptions& options, const std::string& name, Sizes sizes,
                 const std::optional<Init>& init) {
  const auto layout = layout_of(options);
  const bool is_out_in = layout == kernels::WeightLayout::out_in;
  return {
      .name = name + ".weight",
      .shape = is_out_in ? Shape{sizes.outputs, sizes.inputs} : Shape{sizes.inputs, sizes.outputs},
      .init = init.value_or(Init::by_inputs(sizes.inputs)),
      .use = Parameter::Use::matrix,
      .layout = layout};
}

Parameter bias(const std::string& name, Sizes sizes, const std::optional<Init>& init) {
  return {.name = name + ".bias",
          .shape = {sizes.outputs},
          .init = init ? Init::zeros() : Init::by_inputs(sizes.inputs)};
}

void add_linear(const StepContext& context, const std::string& name, Sizes sizes, bool with_bias,
                const std::optional<Init>& init,
                Parameter::Place place = Parameter::Place::hidden) {
  Parameter weight = matrix(context.options, name, sizes, init);
  weight.place = place;
  std::optional<Parameter> added;
  if (with_bias) added = bias(name, sizes, init);
  context.add(std::make_unique<const Linear>(std::move(weight), std::move(added)));
}

/// Returns the init of the last projection.
std::optional<Init> out_init(const StepOptions& options) {
  return options.has("out_init") ? options.init("out_init") : options.init("init");
}

// embed

Result<Flow> check_embed(const StepOptions& options, const Flow& input) {
  if (input.kind != Flow::Kind::tokens) return not_taken("tokens", input);
  const auto rows = options.integer("rows");
  if (input.below > rows)
    return Error{"has " + std::to_string(rows) + " rows, but tokens are below " +
                 std::to_string(input.below)};
  return Flow{.shape = {input.shape[0], options.integer("width")}};
}

void build_embed(const StepContext& context) {
  const auto& options = context.options;
  context.add(std::make_unique<const TokenEmbedding>(
      Parameter{.name = context.name + ".weight",
                .shape = {options.integer("rows"), options.integer("width")},
                .init = options.init("init").value_or(Init::normal(1)),
                .place = place_of(options)}));
}

// positions

Result<Flow> check_positions(const StepOptions& options, const Flow& input) {
  if (!is_sequence(input)) return not_taken("a sequence of rows", input);
  if (const auto rows = options.integer("rows"); input.shape[0] > rows)
    return Error{"has " + std::to_string(rows) + " rows, and gets " + to_text(input)};
  return input;
}

void build_positions(const StepContext& context) {
  const auto& options = context.options;
  const auto rows = options.integer("rows"), width = context.input.width();
  const bool is_table = options.text("form") == "table";
  context.add(std::make_unique<const PositionEmbedding>(
      Parameter{.name = context.name + (is_table ? ".weight" : ""),
                .shape = is_table ? Shape{rows, width} : Shape{1, rows, width},
                .init = options.init("init").value_or(Init::normal(0.02)),
                .place = place_of(options)}));
}

// class_token, first

Result<Flow> check_class_token(const StepOptions&, const Flow& input) {
  if (!is_sequence(input)) return not_taken("a sequence of rows", input);
  return Flow{.shape = {input.shape[0] + 1, input.shape[1]}};
}

void build_class_token(const StepContext& context) {
  context.add(std::make_unique<const ClassToken>(
      Parameter{.name = context.name,
                .shape = {1, 1, context.input.width()},
                .init = context.options.init("init").value_or(Init::zeros()),
                .place = place_of(context.options)}));
}

Result<Flow> check_first(const StepOptions&, const Flow& input) {
  if (!is_sequence(input)) return not_taken("a sequence of rows", input);
  return Flow{.shape = {input.width()}};
}

// linear

Result<Flow> check_linear(const StepOptions& options, const Flow& input) {
  if (!has_rows(input)) return not_taken("rows of numbers", input);
  return as_wide_as(input, options.integer("out"));
}

void build_linear(const StepContext& context) {
  const auto& options = context.options;
  add_linear(context, context.name, {context.input.width(), options.integer("out")},
             options.boolean("bias"), options.init("init"), place_of(options));
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
  context.add(std::make_unique<const FeedForward>(
      FeedForward::Part{up(0), bias(name(0), {width, hidden}, init)},
      FeedForward::Part{matrix(options, name(1), {hidden, width}, last),
                        bias(name(1), {hidden, width}, last)},
      options.text("activation") == "gelu" ? kernels::Gelu::erf : kernels::Gelu::tanh));
}

// relu, dropout

Result<Flow> check_elementwise(const StepOptions&, const Flow& input) {
  if (input.kind == Flow::Kind::tokens) return not_taken("numbers", input);
  return input;
}

void build_dropout(const StepContext& context) {
  context.add(std::make_unique<const Dropout>(context.options.number("rate"), context.draws++));
}

}  // namespace

std::vector<StepKind> kinds_for_rows() {
  const StepOption proj{.name = "proj",
                        .type = Type::texts,
                        .help = "The names of the projections.",
                        .presence = Presence::required};
  const auto boolean = [](std::string_view name, std::string_view help, bool fallback) {
    return StepOption{.name = name, .type = Type::boolean, .help = help, .fallback = fallback};
  };
  const auto size = [](std::string_view name, std::string_view help) {
    return StepOption{
        .name = name, .help = help, .presence = Presence::required, .least = 1, .most = most_wide};
  };
  return {
      {.name = "embed",
       .help = "Replaces each token by a row of a trained table. Without init it begins as "
               "\"normal(1)\".",
       .options = {size("rows", "The rows of the table: the vocabulary."),
                   size("width", "The width of a row."), init_option(), place_option("edge")},
       .check = check_embed,
       .build = build_embed},
      {.name = "positions",
       .help = "Adds a trained row to each position. Without init it begins as \"normal(0.02)\".",
       .options = {size("rows", "The rows of the table: the longest sequence."),
                   {.name = "form",
                    .type = Type::choice,
                    .help = "The parameter: NAME.weight [rows, width] (table), or NAME [1, rows, "
                            "width] as in timm (parameter).",
                    .fallback = "table",
                    .among = {"table", "parameter"}},
                   init_option(),
                   place_option("hidden")},
       .check = check_positions,
       .build = build_positions},
      {.name = "class_token",
       .help = "Puts a trained row before each sequence. The parameter has the step's own name. "
               "Without "
               "init it begins at zero.",
       .options = {init_option(), place_option("hidden")},
       .check = check_class_token,
       .build = build_class_token},
      {.name = "first",
       .help = "Keeps the first row of each sequence.",
       .head = StepKind::Head::nothing,
       .check = check_first,
       .build =
           [](const StepContext& context) { context.add(std::make_unique<const FirstRow>()); }},
      {.name = "linear",
       .help = "A product with a trained matrix.",
       .options = {size("out", "The width of the result."),
                   boolean("bias", "Whether a bias is added.", true), layout_option(),
                   init_option(), place_option("hidden")},
       .check = check_linear,
       .build = build_linear},
      {.name = "attention",
       .help = "Self attention. With two names in proj, query, key and value come from one "
               "projection; with four, each has its own, and positions are rotated.",
       .options = {proj,
                   size("heads", "The heads; they divide the width."),
                   {.name = "kv_heads",
                    .help = "The heads of keys and values. Default: as many as heads.",
                    .least = 1,
                    .most = most_wide},
                   {.name = "mask",
                    .type = Type::choice,
                    .help = "Whether a position sees only itself and those before it (causal).",
                    .fallback = "causal",
                    .among = {"causal", "full"}},
                   {.name = "rope",
                    .type = Type::number,
                    .help = "The base of the rotation. Default: none.",
                    .least = 1},
                   boolean("bias", "Whether the projections have biases.", false),
                   layout_option(),
                   init_option(),
                   out_init_option()},
       .check = check_attention,
       .build = build_attention},
      {.name = "feed_forward",
       .help = "Two projections with an activation between them; with three, the activation of "
               "the first gates the second.",
       .options = {proj,
                   size("hidden", "The width between the projections."),
                   {.name = "activation",
                    .type = Type::choice,
                    .help = "The activation. gelu_tanh is the approximation that GPT-2 has.",
                    .presence = Presence::required,
                    .among = {"gelu", "gelu_tanh", "silu"}},
                   boolean("bias", "Whether the projections have biases.", false),
                   layout_option(),
                   init_option(),
                   out_init_option()},
       .check = check_feed_forward,
       .build = build_feed_forward},
      {.name = "relu",
       .help = "The greater of a number and 0.",
       .head = StepKind::Head::nothing,
       .check = check_elementwise,
       .build = [](const StepContext& context) { context.add(std::make_unique<const Relu>()); }},
      {.name = "dropout",
       .help = "Sets a share of the numbers to zero in training. Dropouts are numbered in order "
               "of appearance; the number is a part of the random key.",
       .head = StepKind::Head::option,
       .options = {{.name = "rate",
                    .type = Type::number,
                    .help = "The share.",
                    .presence = Presence::required,
                    .most = 0.99}},
       .check = check_elementwise,
       .build = build_dropout},
  };
}

}  // namespace troupe::models
