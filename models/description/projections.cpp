#include "models/description/projections.h"

#include <memory>
#include <utility>

#include "models/layers/linear.h"

namespace troupe::models {
namespace {

kernels::WeightLayout layout_of(const StepOptions& options) {
  return options.text("layout") == "in_out" ? kernels::WeightLayout::in_out
                                            : kernels::WeightLayout::out_in;
}

}  // namespace

StepOption layout_option() {
  return {.name = "layout",
          .type = StepOption::Type::choice,
          .help =
              "How matrices are stored: [outputs, inputs] as in PyTorch (out_in), or [inputs, "
              "outputs] as in GPT-2 (in_out).",
          .fallback = "out_in",
          .among = {"out_in", "in_out"}};
}

StepOption size_option(std::string_view name, std::string_view help) {
  constexpr double most_wide = 1 << 24;
  return {.name = name,
          .help = help,
          .presence = StepOption::Presence::required,
          .least = 1,
          .most = most_wide};
}

StepOption boolean_option(std::string_view name, std::string_view help, bool fallback) {
  return {.name = name, .type = StepOption::Type::boolean, .help = help, .fallback = fallback};
}

Gate gate_of(const StepOptions& options) {
  if (options.text("activation") == "silu") return Gate::silu;
  return options.text("activation") == "gelu" ? Gate::gelu : Gate::gelu_tanh;
}

bool has_rows(const Flow& input) { return input.kind == Flow::Kind::rows; }
bool is_sequence(const Flow& input) { return has_rows(input) && input.shape.rank() == 2; }

Parameter matrix(const StepOptions& options, const std::string& name, Sizes sizes,
                 const std::optional<Init>& init) {
  const auto layout = layout_of(options);
  const bool is_out_in = layout == kernels::WeightLayout::out_in;
  Parameter made = {
      .name = name + ".weight",
      .shape = is_out_in ? Shape{sizes.outputs, sizes.inputs} : Shape{sizes.inputs, sizes.outputs},
      .init = init.value_or(Init::by_inputs(sizes.inputs)),
      .use = Parameter::Use::matrix,
      .layout = layout};
  if (const Lora* lora = options.lora(); lora && lora->matches(name)) {
    made.lora_rank = lora->rank;
    made.lora_scale = lora->scale();
    made.lora_rate = lora->rate;
  }
  return made;
}

Parameter bias(const std::string& name, Sizes sizes, const std::optional<Init>& init) {
  return {.name = name + ".bias",
          .shape = {sizes.outputs},
          .init = init ? Init::zeros() : Init::by_inputs(sizes.inputs)};
}

void add_linear(const StepContext& context, const std::string& name, Sizes sizes, bool with_bias,
                const std::optional<Init>& init, Parameter::Place place) {
  Parameter weight = matrix(context.options, name, sizes, init);
  weight.place = place;
  std::optional<Parameter> added;
  if (with_bias) added = bias(name, sizes, init);
  context.add(std::make_unique<const Linear>(std::move(weight), std::move(added)));
}

}  // namespace troupe::models
