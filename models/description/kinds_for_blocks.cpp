// Steps of transformer blocks: attention and feed-forward networks.
#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/attention_scores.h"
#include "models/description/projections.h"
#include "models/description/step_kind.h"
#include "models/layers/attention/fused_attention.h"
#include "models/layers/attention/projected_attention.h"
#include "models/layers/attention/self_attention.h"
#include "models/layers/dropout.h"
#include "models/layers/linear.h"
#include "models/layers/networks/feed_forward.h"
#include "models/layers/networks/gated_network.h"
#include "models/layers/networks/separate_gelu.h"
#include "models/layers/relu.h"

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

std::int64_t head_width_of(const StepOptions& options, const Flow& input) {
  return options.has("head_width") ? options.integer("head_width")
                                   : input.width() / options.integer("heads");
}

/// Returns the natural logarithm with the same bits on every machine.
double logarithm(double x) { return kernels::rope_step({.theta = x}, 2); }

/// Sets what yarn (arXiv 2309.00071) makes of its options: bounds from numbers of turns, and the
/// stretch from the factor unless it is given.
void set_yarn(const StepOptions& options, kernels::RopeForm& form, std::int64_t head_width) {
  constexpr double whole_turn = 6.283185307179586;
  const auto turned = static_cast<double>(form.turned(head_width));
  const auto pair_of = [&](std::string_view turns) {
    return turned * logarithm(form.context / (options.number(turns) * whole_turn)) /
           (2 * logarithm(form.theta));
  };
  form.low = std::max(std::floor(pair_of("rope_fast")), 0.0);
  form.high = std::min(std::ceil(pair_of("rope_slow")), turned - 1);
  const double stretch = options.number("rope_stretch");
  const double usual = form.factor > 1 ? 0.1 * logarithm(form.factor) + 1 : 1;
  form.stretch = static_cast<float>(stretch > 0 ? stretch : usual);
}

/// Returns what options say about rotary positions, or nothing without `rope`.
std::optional<kernels::RopeForm> rope_of(const StepOptions& options, std::int64_t head_width) {
  using Form = kernels::RopeForm;
  if (!options.has("rope")) return {};
  const auto scaling = options.text("rope_type");
  Form form{.theta = options.number("rope"),
            .part = options.integer_or("part", 0),
            .pairs = options.text("pairs") == "neighbours" ? Form::Pairs::neighbours
                                                           : Form::Pairs::halves,
            .scaling = scaling == "linear"   ? Form::Scaling::linear
                       : scaling == "llama3" ? Form::Scaling::llama3
                       : scaling == "yarn"   ? Form::Scaling::yarn
                                             : Form::Scaling::none,
            .factor = options.number("rope_factor"),
            .low = options.number("rope_low"),
            .high = options.number("rope_high"),
            .context = options.number("rope_context")};
  if (form.scaling == Form::Scaling::yarn) set_yarn(options, form, head_width);
  return form;
}

Status check_rope(const kernels::RopeForm& form, std::int64_t head_width) {
  if (form.part > head_width)
    return Error{"rotates " + std::to_string(form.part) + " numbers (part), but a head has " +
                 std::to_string(head_width)};
  if (form.turned(head_width) % 2 != 0)
    return Error{"rotates pairs of numbers, but " +
                 std::string(form.part == 0 ? "a head has " : "part is ") +
                 std::to_string(form.turned(head_width))};
  if (form.scaling == kernels::RopeForm::Scaling::yarn && form.theta <= 1)
    return Error{"has yarn with a base (rope) above 1"};
  if (form.scaling == kernels::RopeForm::Scaling::llama3 && form.low >= form.high)
    return Error{"has rope_low below rope_high"};
  return Done{};
}

Status check_fused(const StepOptions& options, const Flow& input) {
  for (const std::string_view name : {"memory", "relative", "rate", "q_init"})
    if (options.has(name)) return Error{"has " + std::string(name) + " with four projections only"};
  if (options.has("kv_heads")) return Error{"has as many kv_heads as heads in a fused projection"};
  if (options.has("qk_norm")) return Error{"normalizes no heads (qk_norm) in a fused projection"};
  if (head_width_of(options, input) * options.integer("heads") != input.width())
    return Error{"has heads that together are as wide as the stream in a fused projection"};
  const bool is_plain = !options.has("cap") && !options.has("factor") &&
                        options.integer("window") == 0 && options.text("order") == "qkv";
  if (!options.has("rope") && !is_plain)
    return Error{"has window, cap, factor and order only with rope in a fused projection"};
  return Done{};
}

Status check_four(const StepOptions& options) {
  const auto heads = options.integer("heads");
  const auto kv_heads = options.integer_or("kv_heads", heads);
  if (options.text("order") != "qkv") return Error{"with four projections has no order"};
  if (heads % kv_heads != 0)
    return Error{"has " + std::to_string(heads) + " heads, which " + std::to_string(kv_heads) +
                 " kv_heads do not divide"};
  return Done{};
}

/// Checks spans of what the step looks at, which has so many rows.
Status check_span(const ReadValue& span, const Flow& input) {
  if (span.flow.kind != Flow::Kind::spans)
    return Error{"takes spans (span) and gets " + to_text(span.flow)};
  if (span.flow.shape[0] != input.shape[0])
    return Error{"takes a span for each row of " + to_text(input) + " and gets " +
                 to_text(span.flow)};
  return Done{};
}

/// Checks what attention reads besides the stream.
Status check_data(const StepOptions& options, const Flow& input) {
  const auto* memory = options.read("memory");
  if (memory && !is_sequence(memory->flow))
    return Error{"takes a sequence of rows (memory) and gets " + to_text(memory->flow)};
  if (memory && options.text("mask") != "full")
    return Error{"with memory has a full mask: mask = \"full\""};
  if (memory && (options.has("rope") || options.has("relative")))
    return Error{
        "with memory has neither rope nor relative: positions of queries and of keys are "
        "not those of one sequence"};
  if (const auto* span = options.read("span"))
    if (auto good = check_span(*span, input); !good) return good.error();
  if (!options.has("relative")) return Done{};
  if (options.has("cap")) return Error{"has no cap with relative"};
  const auto buckets = options.integer("buckets");
  if (options.text("mask") == "full" && buckets % 2 != 0)
    return Error{"with a full mask has even buckets, half of them for each direction"};
  if (options.integer("distance") <= buckets) return Error{"has a distance above its buckets"};
  return Done{};
}

Result<Flow> check_attention(const StepOptions& options, const Flow& input) {
  if (!is_sequence(input)) return not_taken("a sequence of rows", input);
  const auto heads = options.integer("heads");
  if (!options.has("head_width") && input.width() % heads != 0)
    return Error{"has " + std::to_string(heads) + " heads, which do not divide " + to_text(input)};
  const auto projections = options.texts("proj").size();
  if (projections != 2 && projections != 4)
    return Error{
        "takes two projections (query, key and value in one; output), or four (query; "
        "key; value; output), and gets " +
        std::to_string(projections)};
  if (auto good = projections == 2 ? check_fused(options, input) : check_four(options); !good)
    return good.error();
  if (auto good = check_data(options, input); !good) return good.error();
  if (options.integer("window") > 0 && options.text("mask") != "causal")
    return Error{"has a window only with a causal mask"};
  const auto head_width = head_width_of(options, input);
  if (const auto rope = rope_of(options, head_width))
    if (auto good = check_rope(*rope, head_width); !good) return good.error();
  return input;
}

std::optional<RelativeBiases> relative_of(const StepContext& context) {
  const auto& options = context.options;
  if (!options.has("relative")) return {};
  const auto name = full_name(context.part, std::string(options.text("relative")));
  return RelativeBiases{.table = {.name = name + ".weight",
                                  .shape = {options.integer("buckets"), options.integer("heads")},
                                  .init = options.init("init").value_or(Init::normal(1))},
                        .distance = options.integer("distance")};
}

AttentionCore core_of(const StepContext& context, std::optional<HeadNorms> norms = {}) {
  const auto& options = context.options;
  const auto heads = options.integer("heads");
  const bool drops = options.has("rate");
  const auto* span = options.read("span");
  return AttentionCore(
      {.queries = heads,
       .keys = options.integer_or("kv_heads", heads),
       .width = head_width_of(options, context.input),
       .mask = options.text("mask") == "causal" ? kernels::Mask::causal : kernels::Mask::full,
       .window = options.integer("window"),
       .scale = options.has("factor") ? static_cast<float>(options.number("factor")) : 0,
       .cap = options.has("cap") ? static_cast<float>(options.number("cap")) : 0,
       .rope = rope_of(options, head_width_of(options, context.input)),
       .rate = drops ? static_cast<float>(options.number("rate")) : 0,
       .draw = drops ? context.draws++ : 0,
       .span = span ? std::optional(span->number) : std::nullopt},
      std::move(norms), relative_of(context));
}

std::optional<HeadNorms> norms_of(const StepContext& context) {
  const auto& options = context.options;
  if (!options.has("qk_norm")) return {};
  const auto scale = [&](const char* name) {
    return Parameter{.name = context.name + name,
                     .shape = {head_width_of(options, context.input)},
                     .init = Init::ones()};
  };
  return HeadNorms{.query = scale(".q_norm.weight"),
                   .key = scale(".k_norm.weight"),
                   .eps = static_cast<float>(options.number("eps"))};
}

/// Builds attention with a projection each for queries, keys and values.
void build_projected(const StepContext& context, const std::vector<std::string>& names) {
  const auto& options = context.options;
  const auto width = context.input.width(), heads = options.integer("heads");
  const auto head_width = head_width_of(options, context.input);
  const Sizes of_queries{width, heads * head_width};
  const auto* memory = options.read("memory");
  const Sizes of_keys{memory ? memory->flow.width() : width,
                      options.integer_or("kv_heads", heads) * head_width};
  const auto init = options.init("init");
  const auto name = [&](std::size_t index) { return context.name + "." + names[index]; };
  const auto q_init = options.has("q_init") ? options.init("q_init") : init;
  ProjectedAttention::Projections projections{.query = matrix(options, name(0), of_queries, q_init),
                                              .key = matrix(options, name(1), of_keys, init),
                                              .value = matrix(options, name(2), of_keys, init)};
  if (options.boolean("bias"))
    projections.biases = {bias(name(0), of_queries, init), bias(name(1), of_keys, init),
                          bias(name(2), of_keys, init)};
  if (const auto* span = options.read("span"))
    context.look_over(*span, memory ? memory->flow.shape[0] : context.input.shape[0]);
  context.add(std::make_unique<const ProjectedAttention>(
      core_of(context, norms_of(context)), std::move(projections),
      memory ? std::optional(KeptInput{memory->number, memory->has_gradient}) : std::nullopt));
}

void build_fused(const StepContext& context, const std::string& name) {
  const auto& options = context.options;
  const auto width = context.input.width();
  add_linear(context, context.name + "." + name, {width, 3 * width}, options.boolean("bias"),
             options.init("init"));
  const auto* span = options.read("span");
  if (span) context.look_over(*span, context.input.shape[0]);
  if (options.has("rope") || span) {
    const auto order = options.text("order") == "per_head" ? FusedAttention::Order::per_head
                                                           : FusedAttention::Order::qkv;
    context.add(std::make_unique<const FusedAttention>(core_of(context), order));
    return;
  }
  context.add(std::make_unique<const SelfAttention>(
      options.integer("heads"),
      options.text("mask") == "causal" ? kernels::Mask::causal : kernels::Mask::full));
}

void build_attention(const StepContext& context) {
  const auto& options = context.options;
  const auto names = options.texts("proj");
  if (names.size() == 4)
    build_projected(context, names);
  else
    build_fused(context, names.front());
  const bool with_bias = options.boolean(options.has("out_bias") ? "out_bias" : "bias");
  add_linear(
      context, context.name + "." + names.back(),
      {options.integer("heads") * head_width_of(options, context.input), context.input.width()},
      with_bias, out_init(options));
}

// feed_forward

Result<Flow> check_feed_forward(const StepOptions& options, const Flow& input) {
  if (!has_rows(input)) return not_taken("rows of numbers", input);
  const auto projections = options.texts("proj").size();
  if (projections != 2 && projections != 3)
    return Error{"takes two projections (up, down), or three (gate, up, down), and gets " +
                 std::to_string(projections)};
  const bool is_gated = projections == 3;
  const auto activation = options.text("activation");
  if (!is_gated && activation == "silu")
    return Error{"with two projections has the activation gelu, gelu_tanh or relu"};
  if (is_gated && activation == "relu")
    return Error{"with three projections has the activation gelu, gelu_tanh or silu"};
  if (is_gated && options.boolean("bias")) return Error{"with three projections has no biases"};
  return input;
}

kernels::Gelu gelu_of(const StepOptions& options) {
  return options.text("activation") == "gelu" ? kernels::Gelu::erf : kernels::Gelu::tanh;
}

/// Adds the dropout behind the activation.
void add_rate(const StepContext& context) {
  if (context.options.has("rate"))
    context.add(std::make_unique<const Dropout>(context.options.number("rate"), context.draws++));
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
    context.add(std::make_unique<const GatedNetwork>(up(0), up(1), gate_of(options)));
    add_rate(context);
    add_linear(context, name(2), {hidden, width}, false, out_init(options));
    return;
  }
  const auto init = options.init("init"), last = out_init(options);
  const auto form = gelu_of(options);
  Parameter first = up(0), second = matrix(options, name(1), {hidden, width}, last);
  const bool has_biases = options.boolean("bias"), is_relu = options.text("activation") == "relu";
  std::optional<Parameter> first_bias, second_bias;
  if (has_biases) {
    first_bias = bias(name(0), {width, hidden}, init);
    second_bias = bias(name(1), {hidden, width}, last);
  }
  const bool has_addition = first.lora_rank > 0 || second.lora_rank > 0;
  if (has_biases && !is_relu && !options.has("rate") && !has_addition) {
    context.add(std::make_unique<const FeedForward>(
        FeedForward::Part{std::move(first), *std::move(first_bias)},
        FeedForward::Part{std::move(second), *std::move(second_bias)}, form));
    return;
  }
  // Its fused products have no place for the rest.
  context.add(std::make_unique<const Linear>(std::move(first), std::move(first_bias)));
  if (is_relu)
    context.add(std::make_unique<const Relu>());
  else
    context.add(std::make_unique<const SeparateGelu>(form));
  add_rate(context);
  context.add(std::make_unique<const Linear>(std::move(second), std::move(second_bias)));
}

}  // namespace

std::vector<StepKind> kinds_for_blocks() {
  const StepOption proj{.name = "proj",
                        .type = Type::texts,
                        .help = "The names of the projections.",
                        .presence = Presence::required};
  return {
      {.name = "attention",
       .help = "Attention of the stream to itself, or to another value (memory). With two names in "
               "proj, query, key and value come from one projection; with four, each has its own.",
       .options =
           {proj,
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
            {.name = "head_width",
             .help = "The width of a head. Default: the width divided by the heads.",
             .least = 1,
             .most = 1 << 16},
            {.name = "window",
             .help = "The last positions that each one sees, with a causal mask. 0: all.",
             .fallback = 0,
             .most = 1 << 24},
            {.name = "span",
             .type = Type::value,
             .help = "Spans: the first and the end of what each position may look at. The mask and "
                     "the window cut them further. Default: all."},
            {.name = "memory",
             .type = Type::value,
             .help = "The value that keys and values are made of, for cross attention. With four "
                     "projections. Default: the stream."},
            {.name = "relative",
             .type = Type::text,
             .help = "The name of trained biases that are added to scores: NAME.weight [buckets, "
                     "heads], by the distance of key and query as in T5. Layers may share them. "
                     "With four projections. Default: none."},
            {.name = "buckets",
             .help = "With relative: how many biases there are. With a full mask, half of them "
                     "are for keys behind the query.",
             .fallback = 32,
             .least = 4,
             .most = kernels::most_buckets},
            {.name = "distance",
             .help = "With relative: from this distance on, positions share a bias.",
             .fallback = 128,
             .least = 2,
             .most = kernels::most_distance},
            {.name = "rate",
             .type = Type::number,
             .help = "The share of weights between positions that dropout sets to zero in "
                     "training. It is numbered as a dropout step is. With four projections. "
                     "Default: none.",
             .most = 0.99},
            {.name = "factor",
             .type = Type::number,
             .help = "What scores are multiplied by. Default: 1 / sqrt(width of a head).",
             .least = 1e-6},
            {.name = "cap",
             .type = Type::number,
             .help = "A bound that scores s approach, as cap * tanh(s / cap). Default: "
                     "none.",
             .least = 1e-3},
            {.name = "qk_norm",
             .type = Type::choice,
             .help = "Normalizes each head of queries and keys by its root mean square "
                     "(head). The scales are NAME.q_norm.weight and NAME.k_norm.weight. "
                     "Default: no norm.",
             .among = {"head"}},
            {.name = "eps",
             .type = Type::number,
             .help = "What qk_norm adds to the mean square.",
             .fallback = 1e-6,
             .most = 1},
            {.name = "rope",
             .type = Type::number,
             .help = "The base of the rotation. Default: none.",
             .least = 1},
            {.name = "part",
             .help = "The numbers of a head that are rotated, from the first on. Default: "
                     "all.",
             .least = 2,
             .most = 1 << 16},
            {.name = "pairs",
             .type = Type::choice,
             .help = "Which numbers are rotated together: one of each half, or "
                     "neighbours as in GPT-J.",
             .fallback = "halves",
             .among = {"halves", "neighbours"}},
            {.name = "rope_type",
             .type = Type::choice,
             .help = "How frequencies change for long contexts: linear divides them by "
                     "rope_factor, llama3 only those of fewer than rope_low turns in "
                     "rope_context positions, and those below rope_high partly, yarn those of "
                     "pairs with few turns, by rope_fast and rope_slow.",
             .fallback = "default",
             .among = {"default", "linear", "llama3", "yarn"}},
            {.name = "rope_factor",
             .type = Type::number,
             .help = "See rope_type.",
             .fallback = 1.0,
             .least = 1e-6},
            {.name = "rope_low", .type = Type::number, .help = "See rope_type.", .fallback = 1.0},
            {.name = "rope_high", .type = Type::number, .help = "See rope_type.", .fallback = 4.0},
            {.name = "rope_context",
             .type = Type::number,
             .help = "See rope_type.",
             .fallback = 8192.0,
             .least = 1},
            {.name = "rope_fast",
             .type = Type::number,
             .help = "With yarn: pairs of more turns in rope_context are not divided.",
             .fallback = 32.0,
             .least = 1e-3},
            {.name = "rope_slow",
             .type = Type::number,
             .help = "With yarn: pairs of fewer turns in rope_context are divided.",
             .fallback = 1.0,
             .least = 1e-3},
            {.name = "rope_stretch",
             .type = Type::number,
             .help = "With yarn: the factor on rotated numbers. 0: 0.1 log(rope_factor) + 1.",
             .fallback = 0.0},
            {.name = "order",
             .type = Type::choice,
             .help = "How a fused projection lays out its result: all queries, all keys, "
                     "all values (qkv), or these of one head after another (per_head).",
             .fallback = "qkv",
             .among = {"qkv", "per_head"}},
            boolean_option("bias", "Whether the projections have biases.", false),
            {.name = "out_bias",
             .type = Type::boolean,
             .help = "Whether the last projection has a bias. Default: as bias says."},
            layout_option(),
            init_option(),
            {.name = "q_init",
             .type = Type::init,
             .help = "How the projection of queries begins. With four projections. Default: as "
                     "init says."},
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
                    .help =
                        "The activation. gelu_tanh is the approximation that GPT-2 has. silu is "
                        "for three projections, relu for two.",
                    .presence = Presence::required,
                    .among = {"gelu", "gelu_tanh", "silu", "relu"}},
                   {.name = "rate",
                    .type = Type::number,
                    .help = "The share of numbers behind the activation that dropout sets to zero "
                            "in training. It is numbered as a dropout step is. Default: none.",
                    .most = 0.99},
                   boolean_option("bias", "Whether the projections have biases.", false),
                   layout_option(),
                   init_option(),
                   out_init_option()},
       .check = check_feed_forward,
       .build = build_feed_forward},
  };
}

}  // namespace troupe::models
