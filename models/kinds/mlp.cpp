#include <array>
#include <utility>

#include "models/kinds/kinds.h"
#include "models/kinds/options.h"
#include "models/layers/cross_entropy.h"
#include "models/layers/dropout.h"
#include "models/layers/linear.h"
#include "models/layers/relu.h"
#include "models/layers/sequence.h"

namespace troupe::models {
namespace {

constexpr std::size_t most_layers = 4096;

LayerPtr linear(const std::string& name, std::int64_t inputs, std::int64_t outputs,
                Parameter::Place place) {
  return std::make_unique<const Linear>(
      Parameter{.name = name + ".weight",
                .shape = {outputs, inputs},
                .init = Init::by_inputs(inputs),
                .use = Parameter::Use::matrix,
                .place = place},
      Parameter{.name = name + ".bias", .shape = {outputs}, .init = Init::by_inputs(inputs)});
}

Result<Model> build_mlp(const Value& options) {
  const auto dims = integers(options, "dims");
  const double rate = number(options, "dropout");
  if (dims.size() < 2 || dims.size() > most_layers + 1)
    return Error{"model.dims has " + std::to_string(dims.size()) +
                 " entries; give the width of the input, of each hidden layer and of the output: 2 "
                 "to " +
                 std::to_string(most_layers + 1)};
  Model model{.kind = "mlp",
              .units = {},
              .loss = std::make_unique<const CrossEntropy>(),
              .sample = {.input = {dims.front()}, .input_type = DType::f32, .target = {}},
              .classes = dims.back()};
  const std::size_t layers = dims.size() - 1;
  for (std::size_t i = 0; i < layers; ++i) {
    const bool is_last = i + 1 == layers;
    const auto name = "layers." + std::to_string(i);
    const auto place = i == 0 || is_last ? Parameter::Place::edge : Parameter::Place::hidden;
    auto layer = linear(name, dims[i], dims[i + 1], place);
    if (!is_last)
      layer = in_sequence(std::move(layer), std::make_unique<const Relu>(),
                          std::make_unique<const Dropout>(rate, static_cast<std::uint32_t>(i)));
    model.units.push_back({name, std::move(layer)});
  }
  return model;
}

}  // namespace

BuiltInKind mlp() {
  static const std::array options{
      Option{.name = "dims",
             .type = Option::Type::integers,
             .least = 1,
             .most = 1 << 20,
             .help =
                 "Sizes of the input, of each hidden layer and of the output (number of classes)."},
      option::dropout("Dropout probability after each hidden layer.")};
  return {.name = "mlp",
          .help = "Linear layers with ReLU between them.",
          .options = options,
          .build = build_mlp};
}

}  // namespace troupe::models
