#include <array>
#include <cmath>
#include <utility>

#include "models/kinds/kinds.h"
#include "models/kinds/options.h"
#include "models/layers/cross_entropy.h"
#include "models/layers/dropout.h"
#include "models/layers/images/average_pool.h"
#include "models/layers/images/batch_norm.h"
#include "models/layers/images/conv2d.h"
#include "models/layers/linear.h"
#include "models/layers/relu.h"
#include "models/layers/residual.h"
#include "models/layers/sequence.h"

namespace troupe::models {
namespace {

constexpr float eps = 1e-5f;
constexpr std::size_t most_groups = 16;

struct Convolution {
  std::string name;
  std::int64_t inputs, outputs;
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
};

/// Initializes by fan-out, as He et al. 2015: the variance is 2 / (outputs * kernel^2).
LayerPtr convolution(const Convolution& c) {
  const double fan_out = static_cast<double>(c.outputs * c.kernel * c.kernel);
  return std::make_unique<const Conv2d>(
      Parameter{.name = c.name + ".weight",
                .shape = {c.outputs, c.inputs, c.kernel, c.kernel},
                .init = Init::normal(std::sqrt(2 / fan_out))},
      c.stride, c.kernel / 2);
}

LayerPtr norm(const std::string& name, std::int64_t channels) {
  return std::make_unique<const BatchNorm>(name, channels, eps);
}

LayerPtr relu() { return std::make_unique<const Relu>(); }

struct Block {
  std::string name;
  std::int64_t inputs, outputs, stride;
};

LayerPtr block(const Block& b) {
  auto inner = in_sequence(
      convolution({.name = b.name + ".conv1",
                   .inputs = b.inputs,
                   .outputs = b.outputs,
                   .stride = b.stride}),
      norm(b.name + ".bn1", b.outputs), relu(),
      convolution({.name = b.name + ".conv2", .inputs = b.outputs, .outputs = b.outputs}),
      norm(b.name + ".bn2", b.outputs));
  LayerPtr shortcut;
  if (b.stride != 1 || b.inputs != b.outputs)
    shortcut = in_sequence(convolution({.name = b.name + ".downsample.0",
                                        .inputs = b.inputs,
                                        .outputs = b.outputs,
                                        .kernel = 1,
                                        .stride = b.stride}),
                           norm(b.name + ".downsample.1", b.outputs));
  return in_sequence(std::make_unique<const Residual>(std::move(inner), std::move(shortcut)),
                     relu());
}

LayerPtr ending(std::int64_t width, std::int64_t classes, double dropout) {
  return in_sequence(
      std::make_unique<const AveragePool>(), std::make_unique<const Dropout>(dropout, 0),
      std::make_unique<const Linear>(
          Parameter{.name = "fc.weight",
                    .shape = {classes, width},
                    .init = Init::by_inputs(width),
                    .use = Parameter::Use::matrix,
                    .place = Parameter::Place::edge},
          Parameter{.name = "fc.bias", .shape = {classes}, .init = Init::by_inputs(width)}));
}

Result<Model> build_resnet(const Value& options) {
  const auto widths = integers(options, "widths"), blocks = integers(options, "blocks");
  const auto channels = integer(options, "channels"), classes = integer(options, "classes");
  if (widths.empty() || widths.size() != blocks.size())
    return Error{"model.widths has " + std::to_string(widths.size()) +
                 " entries and model.blocks has " + std::to_string(blocks.size()) +
                 "; each group of blocks needs one of both"};
  if (widths.size() > most_groups)
    return Error{"model.widths has " + std::to_string(widths.size()) + " entries, but at most " +
                 std::to_string(most_groups) + " groups of blocks can each halve the image"};

  Model model{.kind = "resnet",
              .units = {},
              .loss = std::make_unique<const CrossEntropy>(),
              .sample = {.input = {channels, 0, 0}, .input_type = DType::f32, .target = {}},
              .classes = classes};
  std::int64_t width = widths[0];
  for (std::size_t group = 0; group < widths.size(); ++group) {
    for (std::int64_t i = 0; i < blocks[group]; ++i) {
      const auto name = "layer" + std::to_string(group + 1) + "." + std::to_string(i);
      const std::int64_t stride = group > 0 && i == 0 ? 2 : 1;
      model.units.push_back({name, block({.name = name,
                                          .inputs = std::exchange(width, widths[group]),
                                          .outputs = widths[group],
                                          .stride = stride})});
    }
  }
  auto& first = model.units.front().layer;
  first = in_sequence(convolution({.name = "conv1", .inputs = channels, .outputs = widths[0]}),
                      norm("bn1", widths[0]), relu(), std::move(first));
  auto& last = model.units.back().layer;
  last = in_sequence(std::move(last), ending(width, classes, number(options, "dropout")));
  return model;
}

}  // namespace

BuiltInKind resnet() {
  static const std::array options{
      option::channels(),
      Option{.name = "widths",
             .type = Option::Type::integers,
             .least = 1,
             .most = 1 << 16,
             .help = "Channels of each group of blocks. Every group after the first halves the "
                     "image's height and width."},
      Option{.name = "blocks",
             .type = Option::Type::integers,
             .least = 1,
             .most = 4096,
             .help = "Residual blocks per group."},
      option::classes(), option::dropout("Dropout probability before the last layer.")};
  return {.name = "resnet",
          .help = "Residual network of basic blocks, with a 3x3 stem for small images.",
          .options = options,
          .build = build_resnet};
}

}  // namespace troupe::models
