// Steps that compute tokens and rows of numbers.
#include <array>
#include <optional>
#include <utility>

#include "models/description/projections.h"
#include "models/description/step_kind.h"
#include "models/layers/dropout.h"
#include "models/layers/images/class_token.h"
#include "models/layers/linear.h"
#include "models/layers/networks/separate_gelu.h"
#include "models/layers/position_embedding.h"
#include "models/layers/relu.h"
#include "models/layers/scale.h"
#include "models/layers/token_embedding.h"

namespace troupe::models {
namespace {

using Type = StepOption::Type;
using Presence = StepOption::Presence;

/// Returns the flow with another width.
Flow as_wide_as(const Flow& input, std::int64_t width) {
  Flow output;
  for (int i = 0; i + 1 < input.shape.rank(); ++i) output.shape.append(input.shape[i]);
  output.shape.append(width);
  return output;
}

// embed

Result<Flow> check_embed(const StepOptions& options, const Flow& stream) {
  const auto* of = options.read("of");
  const Flow& input = of ? of->flow : stream;
  if (input.kind != Flow::Kind::tokens) return not_taken("tokens", input);
  const auto rows = options.integer("rows");
  if (input.below > rows)
    return Error{"has " + std::to_string(rows) + " rows, but tokens are below " +
                 std::to_string(input.below)};
  return Flow{.shape = {input.shape[0], options.integer("width")}};
}

void build_embed(const StepContext& context) {
  const auto& options = context.options;
  const auto* of = options.read("of");
  const auto kept = of && !of->is_stream ? std::optional(of->number) : std::nullopt;
  context.add(std::make_unique<const TokenEmbedding>(
      Parameter{.name = context.name + ".weight",
                .shape = {options.integer("rows"), options.integer("width")},
                .init = options.init("init").value_or(Init::normal(1)),
                .place = place_of(options)},
      kept));
}

// positions

Result<Flow> check_positions(const StepOptions& options, const Flow& input) {
  if (!is_sequence(input)) return not_taken("a sequence of rows", input);
  const auto rows = options.integer("rows");
  if (const auto* of = options.read("of")) {
    if (options.has("row")) return Error{"has either of or row"};
    if (of->flow.kind != Flow::Kind::tokens || of->flow.shape[0] != input.shape[0])
      return Error{"takes a number of a row (of) for each row of " + to_text(input) + " and gets " +
                   to_text(of->flow)};
    if (of->flow.below > rows)
      return Error{"has " + std::to_string(rows) + " rows, but numbers of rows (of) are below " +
                   std::to_string(of->flow.below)};
    return input;
  }
  const auto wanted = options.has("row") ? options.integer("row") + 1 : input.shape[0];
  if (wanted > rows)
    return Error{
        "has " + std::to_string(rows) + " rows, and " +
        (options.has("row") ? "row is " + std::to_string(wanted - 1) : "gets " + to_text(input))};
  return input;
}

void build_positions(const StepContext& context) {
  const auto& options = context.options;
  const auto rows = options.integer("rows"), width = context.input.width();
  const auto* of = options.read("of");
  const bool is_table = options.text("form") == "table";
  context.add(std::make_unique<const PositionEmbedding>(
      Parameter{.name = context.name + (is_table ? ".weight" : ""),
                .shape = is_table ? Shape{rows, width} : Shape{1, rows, width},
                .init = options.init("init").value_or(Init::normal(0.02)),
                .place = place_of(options)},
      PositionEmbedding::Rows{
          .all = options.has("row") ? std::optional(options.integer("row")) : std::nullopt,
          .kept = of ? std::optional(of->number) : std::nullopt}));
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
  if (options.has("bias_name") && !options.boolean("bias"))
    return Error{"has a bias_name, but bias = false"};
  return as_wide_as(input, options.integer("out"));
}

void build_linear(const StepContext& context) {
  const auto& options = context.options;
  const Sizes sizes{context.input.width(), options.integer("out")};
  if (!options.has("bias_name"))
    return add_linear(context, context.name, sizes, options.boolean("bias"), options.init("init"),
                      place_of(options));
  Parameter weight = matrix(options, context.name, sizes, options.init("init"));
  weight.place = place_of(options);
  const auto name = full_name(context.part, std::string(options.text("bias_name")));
  context.add(
      std::make_unique<const Linear>(std::move(weight), bias(name, sizes, options.init("init"))));
}

// relu, dropout

Result<Flow> check_elementwise(const StepOptions&, const Flow& input) {
  if (input.has_integers()) return not_taken("numbers", input);
  return input;
}

void build_dropout(const StepContext& context) {
  context.add(std::make_unique<const Dropout>(context.options.number("rate"), context.draws++));
}

void build_act(const StepContext& context) {
  const bool is_exact = context.options.text("kind") == "gelu";
  context.add(
      std::make_unique<const SeparateGelu>(is_exact ? kernels::Gelu::erf : kernels::Gelu::tanh));
}

void build_scale(const StepContext& context) {
  context.add(std::make_unique<const Scale>(static_cast<float>(context.options.number("factor"))));
}

void build_softcap(const StepContext& context) {
  context.add(std::make_unique<const SoftCap>(static_cast<float>(context.options.number("cap"))));
}

}  // namespace

std::vector<StepKind> kinds_for_rows() {
  return {
      {.name = "embed",
       .help = "Replaces each token by a row of a trained table. Without init it begins as "
               "\"normal(1)\".",
       .options = {size_option("rows", "The rows of the table: the vocabulary."),
                   size_option("width", "The width of a row."),
                   {.name = "of",
                    .type = Type::value,
                    .help = "The tokens: an input, or a value of tokens that a keep marked. The "
                            "stream begins anew with their rows, so a keep comes right before. "
                            "Default: the stream."},
                   init_option(),
                   place_option("edge")},
       .check = check_embed,
       .build = build_embed},
      {.name = "positions",
       .help = "Adds a trained row to each position. Without init it begins as \"normal(0.02)\".",
       .options = {size_option("rows", "The rows of the table: the longest sequence."),
                   {.name = "form",
                    .type = Type::choice,
                    .help = "The parameter: NAME.weight [rows, width] (table), or NAME [1, rows, "
                            "width] as in timm (parameter).",
                    .fallback = "table",
                    .among = {"table", "parameter"}},
                   {.name = "row",
                    .help = "The row that every position gets, such as the type of all tokens in "
                            "BERT. Default: each position its own.",
                    .most = 1 << 24},
                   {.name = "of",
                    .type = Type::value,
                    .help = "The numbers of the rows that positions get: an input of integers, or "
                            "tokens that a keep marked. Default: 0, 1, 2 and so on."},
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
       .options = {size_option("out", "The width of the result."),
                   boolean_option("bias", "Whether a bias is added.", true),
                   {.name = "bias_name",
                    .type = Type::text,
                    .help = "The name of the bias: NAME.bias. Default: the step's own name."},
                   layout_option(),
                   init_option(),
                   place_option("hidden")},
       .check = check_linear,
       .build = build_linear},
      {.name = "relu",
       .help = "The greater of a number and 0.",
       .head = StepKind::Head::nothing,
       .check = check_elementwise,
       .build = [](const StepContext& context) { context.add(std::make_unique<const Relu>()); }},
      {.name = "act",
       .help = "An activation of each number.",
       .head = StepKind::Head::option,
       .options = {{.name = "kind",
                    .type = Type::choice,
                    .help = "The activation. gelu_tanh is the approximation that GPT-2 has.",
                    .presence = Presence::required,
                    .among = {"gelu", "gelu_tanh"}}},
       .check = check_elementwise,
       .build = build_act},
      {.name = "scale",
       .help = "A product with a number.",
       .head = StepKind::Head::option,
       .options = {{.name = "factor",
                    .type = Type::number,
                    .help = "The number.",
                    .presence = Presence::required,
                    .least = -1e9}},
       .check = check_elementwise,
       .build = build_scale},
      {.name = "softcap",
       .help = "Makes cap * tanh(x / cap) of each number x, which stays below cap.",
       .head = StepKind::Head::option,
       .options = {{.name = "cap",
                    .type = Type::number,
                    .help = "The bound.",
                    .presence = Presence::required,
                    .least = 1e-3}},
       .check = check_elementwise,
       .build = build_softcap},
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
