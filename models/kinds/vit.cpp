#include <array>
#include <utility>

#include "models/kinds/kinds.h"
#include "models/kinds/options.h"
#include "models/layers/cross_entropy.h"
#include "models/layers/dropout.h"
#include "models/layers/feed_forward.h"
#include "models/layers/images/class_token.h"
#include "models/layers/images/patches.h"
#include "models/layers/layer_norm.h"
#include "models/layers/linear.h"
#include "models/layers/position_embedding.h"
#include "models/layers/residual_stream.h"
#include "models/layers/self_attention.h"
#include "models/layers/sequence.h"

namespace troupe::models {
namespace {

constexpr float eps = 1e-6f;
constexpr double deviation = 0.02;

struct Vit {
  std::int64_t image, patch, channels, width, layers, heads, classes;
  double dropout;

  static FeedForward::Part part(const std::string& name, std::int64_t inputs, std::int64_t outputs,
                                Parameter::Place place = Parameter::Place::hidden) {
    return {.matrix = {.name = name + ".weight",
                       .shape = {outputs, inputs},
                       .init = Init::normal(deviation),
                       .use = Parameter::Use::matrix,
                       .place = place},
            .bias = {.name = name + ".bias", .shape = {outputs}}};
  }
  static LayerPtr linear(const std::string& name, std::int64_t inputs, std::int64_t outputs,
                         Parameter::Place place = Parameter::Place::hidden) {
    auto [matrix, bias] = part(name, inputs, outputs, place);
    return std::make_unique<const Linear>(std::move(matrix), std::move(bias));
  }
  NormPtr norm(const std::string& name) const {
    return std::make_unique<const LayerNorm>(name, width, eps);
  }
  LayerPtr drop(std::int64_t operation) const {
    return std::make_unique<const Dropout>(dropout, static_cast<std::uint32_t>(operation));
  }

  LayerPtr embedding() const {
    const auto inputs = channels * patch * patch;
    const auto patches = (image / patch) * (image / patch);
    // A convolution whose stride equals its kernel size is a product with each patch.
    return in_sequence(
        std::make_unique<const Patches>(patch),
        std::make_unique<const Linear>(Parameter{.name = "patch_embed.proj.weight",
                                                 .shape = {width, channels, patch, patch},
                                                 .init = Init::by_inputs(inputs),
                                                 .use = Parameter::Use::matrix,
                                                 .place = Parameter::Place::edge},
                                       Parameter{.name = "patch_embed.proj.bias",
                                                 .shape = {width},
                                                 .init = Init::by_inputs(inputs)}),
        std::make_unique<const ClassToken>(
            Parameter{.name = "cls_token", .shape = {1, 1, width}, .init = Init::normal(1e-6)}),
        std::make_unique<const PositionEmbedding>(Parameter{.name = "pos_embed",
                                                            .shape = {1, patches + 1, width},
                                                            .init = Init::normal(deviation)}),
        drop(0));
  }

  LayerPtr block(std::int64_t index) const {
    const auto name = "blocks." + std::to_string(index);
    return residual_stream(
        {norm(name + ".norm1"),
         in_sequence(linear(name + ".attn.qkv", width, 3 * width),
                     std::make_unique<const SelfAttention>(heads, kernels::Mask::full),
                     linear(name + ".attn.proj", width, width), drop(1 + 2 * index))},
        {norm(name + ".norm2"),
         in_sequence(std::make_unique<const FeedForward>(part(name + ".mlp.fc1", width, 4 * width),
                                                         part(name + ".mlp.fc2", 4 * width, width),
                                                         kernels::Gelu::erf),
                     drop(2 + 2 * index))});
  }

  // Normalizes only the row that the head reads: the norm treats each row by itself.
  LayerPtr ending() const {
    return in_sequence(std::make_unique<const FirstRow>(), norm("norm"),
                       linear("head", width, classes, Parameter::Place::edge));
  }
};

Result<Model> build_vit(const Value& options) {
  if (auto divides = check_divides(options, "patch", "image"); !divides) return divides.error();
  if (auto divides = check_divides(options, "heads", "width"); !divides) return divides.error();
  const Vit vit{.image = integer(options, "image"),
                .patch = integer(options, "patch"),
                .channels = integer(options, "channels"),
                .width = integer(options, "width"),
                .layers = integer(options, "layers"),
                .heads = integer(options, "heads"),
                .classes = integer(options, "classes"),
                .dropout = number(options, "dropout")};
  Model model{.kind = "vit",
              .units = {},
              .loss = std::make_unique<const CrossEntropy>(),
              .sample = {.input = {vit.channels, vit.image, vit.image},
                         .input_type = DType::f32,
                         .target = {}},
              .classes = vit.classes};
  for (std::int64_t i = 0; i < vit.layers; ++i) {
    auto layer = vit.block(i);
    if (i == 0) layer = in_sequence(vit.embedding(), std::move(layer));
    if (i + 1 == vit.layers) layer = in_sequence(std::move(layer), vit.ending());
    model.units.push_back({"blocks." + std::to_string(i), std::move(layer)});
  }
  return model;
}

}  // namespace

BuiltInKind vit() {
  static const std::array options{
      Option{
          .name = "image", .least = 1, .most = 8192, .help = "Image height and width, in pixels."},
      Option{
          .name = "patch", .least = 1, .most = 8192, .help = "Patch height and width, in pixels."},
      option::channels(),
      option::width(),
      option::layers(),
      option::heads(),
      option::classes(),
      option::dropout("Dropout probability after the embedding, each attention and each "
                      "feed-forward network.")};
  return {.name = "vit",
          .help = "Vision transformer: patches of an image as a sequence, with a class token.",
          .options = options,
          .build = build_vit};
}

}  // namespace troupe::models
