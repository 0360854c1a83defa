// The step for mixtures of experts.
#include <memory>
#include <utility>

#include "models/description/projections.h"
#include "models/description/step_kind.h"
#include "models/layers/linear.h"
#include "models/layers/networks/gated_network.h"
#include "models/layers/networks/mixture_of_experts.h"
#include "models/layers/parallel.h"
#include "models/layers/sequence.h"

namespace troupe::models {
namespace {

using Type = StepOption::Type;
using Presence = StepOption::Presence;

Result<Flow> check_moe(const StepOptions& options, const Flow& input) {
  if (!has_rows(input)) return not_taken("rows of numbers", input);
  if (const auto projections = options.texts("proj").size(); projections != 3)
    return Error{"takes three projections of an expert (gate, up, down), and gets " +
                 std::to_string(projections)};
  const auto count = options.integer("count"), top = options.integer("top");
  if (top > count)
    return Error{"sends a row to " + std::to_string(top) + " experts (top), but has " +
                 std::to_string(count) + " (count)"};
  if (options.has("shared_hidden") && !options.has("shared"))
    return Error{"has shared_hidden only with shared, the name of the shared expert"};
  return input;
}

/// Makes the matrices of experts of one step.
class ExpertMaker {
 public:
  explicit ExpertMaker(const StepContext& context)
      : options_(context.options), names_(context.options.texts("proj")), name_(context.name) {}

  MixtureOfExperts::Expert make(const std::string& expert, std::int64_t width,
                                std::int64_t hidden) const {
    const auto name = [&](std::size_t index) { return name_ + "." + expert + "." + names_[index]; };
    const auto init = options_.init("init");
    const auto last = options_.has("out_init") ? options_.init("out_init") : init;
    return {.gate = matrix(options_, name(0), {width, hidden}, init),
            .up = matrix(options_, name(1), {width, hidden}, init),
            .down = matrix(options_, name(2), {hidden, width}, last)};
  }

 private:
  const StepOptions& options_;
  std::vector<std::string> names_;
  const std::string& name_;
};

void build_moe(const StepContext& context) {
  const auto& options = context.options;
  const ExpertMaker maker(context);
  const auto width = context.input.width(), hidden = options.integer("hidden");
  const auto count = options.integer("count");
  const Gate gate = gate_of(options);
  std::vector<MixtureOfExperts::Expert> experts;
  const auto prefix = std::string(options.text("experts")) + ".";
  for (std::int64_t e = 0; e < count; ++e)
    experts.push_back(maker.make(prefix + std::to_string(e), width, hidden));
  Parameter router{.name = context.name + "." + std::string(options.text("router")) + ".weight",
                   .shape = {count, width},
                   .init = options.init("init").value_or(Init::by_inputs(width))};
  auto mixture = std::make_unique<const MixtureOfExperts>(
      std::move(router), experts,
      MixtureOfExperts::Form{.gate = gate,
                             .top = options.integer("top"),
                             .renormalise = options.boolean("renormalise"),
                             .losses = {.balance = static_cast<float>(options.number("balance")),
                                        .z = static_cast<float>(options.number("z"))}});
  if (!options.has("shared")) return context.add(std::move(mixture));
  auto shared = maker.make(std::string(options.text("shared")), width,
                           options.integer_or("shared_hidden", hidden));
  std::vector<LayerPtr> both;
  both.push_back(std::move(mixture));
  both.push_back(in_sequence(
      std::make_unique<const GatedNetwork>(std::move(shared.gate), std::move(shared.up), gate),
      std::make_unique<const Linear>(std::move(shared.down))));
  context.add(std::make_unique<const Parallel>(std::move(both)));
}

}  // namespace

std::vector<StepKind> kinds_for_experts() {
  constexpr double most_experts = 4096;
  return {
      {.name = "moe",
       .help = "A mixture of experts: a router in fp32 sends each row to the gated networks that "
               "it prefers, and adds their results by its weights. Of equal experts it prefers the "
               "lower one, and it drops no row.",
       .options = {{.name = "router",
                    .type = Type::text,
                    .help = "The name of the router.",
                    .fallback = "gate"},
                   {.name = "experts",
                    .type = Type::text,
                    .help = "The name of the experts. Each has its number behind it.",
                    .fallback = "experts"},
                   {.name = "proj",
                    .type = Type::texts,
                    .help = "The names of an expert's projections: gate, up, down.",
                    .presence = Presence::required},
                   {.name = "count",
                    .help = "The experts.",
                    .presence = Presence::required,
                    .least = 1,
                    .most = most_experts},
                   {.name = "top",
                    .help = "The experts that a row is sent to.",
                    .presence = Presence::required,
                    .least = 1,
                    .most = most_experts},
                   size_option("hidden", "The width between an expert's projections."),
                   {.name = "activation",
                    .type = Type::choice,
                    .help = "The activation of the gates.",
                    .fallback = "silu",
                    .among = {"gelu", "gelu_tanh", "silu"}},
                   boolean_option(
                       "renormalise",
                       "Whether the weights of a row's experts are divided by their sum.", false),
                   {.name = "shared",
                    .type = Type::text,
                    .help = "The name of an expert that all rows go to, and whose result is added. "
                            "Default: none."},
                   {.name = "shared_hidden",
                    .help =
                        "The width between the projections of the shared expert. Default: hidden.",
                    .least = 1,
                    .most = 1 << 24},
                   {.name = "balance",
                    .type = Type::number,
                    .help =
                        "The weight of the balance loss of this step: count times the sum over "
                        "experts of the share of rows that chose it times its mean probability.",
                    .fallback = 0.0,
                    .most = 1e3},
                   {.name = "z",
                    .type = Type::number,
                    .help = "The weight of the mean square of the router's logsumexp.",
                    .fallback = 0.0,
                    .most = 1e3},
                   layout_option(),
                   init_option(),
                   {.name = "out_init",
                    .type = Type::init,
                    .help = "How the last projections begin. Default: as init says."}},
       .check = check_moe,
       .build = build_moe},
  };
}

}  // namespace troupe::models
