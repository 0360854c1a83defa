#include "apps/machine/measure_units.h"

#include <chrono>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "config/model_kinds.h"
#include "models/description/model_kind.h"

using namespace troupe;
using namespace troupe::apps;

namespace {

models::Model little(const std::string& kind) {
  Value table;
  table.set("kind", kind);
  const std::vector<std::pair<std::string, int>> sizes = {
      {"vocab", 13}, {"context", 9}, {"source", 9}, {"target", 5}, {"width", 8},    {"layers", 2},
      {"heads", 2},  {"ffn", 12},    {"image", 6},  {"patch", 3},  {"channels", 2}, {"classes", 5}};
  const auto* const found = config::find_model_kind(kind);
  REQUIRE(found);
  for (const auto& [name, size] : sizes)
    for (const auto& option : found->options())
      if (option.name == name) table.set(name, size);
  if (kind == "mlp") table.set("dims", Value::List{6, 8, 5});
  auto model = config::model_from(table);
  INFO((model ? "" : model.error().text));
  REQUIRE(model);
  return std::move(*model);
}

models::CostRequest two_samples(const models::Model& model) {
  return {.micro = 2, .input = model.sample.input, .target = model.sample.target};
}

/// Measures a model on two devices as fast as possible.
std::vector<UnitTimes> measured(const models::Model& model, const models::CostRequest& request,
                                double expected) {
  const auto costs = models::unit_costs(model, request);
  REQUIRE(costs);
  return measure_units({model, request, *costs, expected},
                       {.count = 2, .threads = 1, .patience = std::chrono::milliseconds(0)});
}

}  // namespace

TEST_CASE("measured units have times for all passes", "[apps]") {
  for (const std::string kind : {"mlp", "gpt2", "llama", "vit", "t5", "mixtral"}) {
    CAPTURE(kind);
    const auto model = little(kind);
    const auto times = measured(model, two_samples(model), 1e-4);
    REQUIRE(times.size() == model.units.size());
    for (const auto& unit : times)
      for (const double time :
           {unit.forward, unit.backward, unit.backward_input, unit.backward_weight, unit.update}) {
        CHECK(time > 0);
        CHECK(std::isfinite(time));
      }
  }
}

TEST_CASE("units of models that are too slow, too large or of GPUs are not measured", "[apps]") {
  const auto model = little("gpt2");
  auto request = two_samples(model);
  CHECK(measured(model, request, 1.6).empty());
  request.computer = models::Computer::gpu;
  CHECK(measured(model, request, 1e-4).empty());
  const auto costs = models::unit_costs(model, two_samples(model));
  REQUIRE(costs);
  auto large = *costs;
  large[0].stash = std::int64_t{2} << 30;
  CHECK(measure_units({model, two_samples(model), large, 1e-4}, {}).empty());
  CHECK(nominal_unit_times({model, two_samples(model), *costs, 0.03}).empty());
}
