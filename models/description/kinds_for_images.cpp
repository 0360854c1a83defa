// Steps that compute images, and norms, which exist for images and for rows.
#include <algorithm>
#include <cmath>
#include <utility>

#include "models/description/step_kind.h"
#include "models/layers/images/average_pool.h"
#include "models/layers/images/batch_norm.h"
#include "models/layers/images/conv2d.h"
#include "models/layers/images/group_norm.h"
#include "models/layers/images/patches.h"
#include "models/layers/images/upsample.h"
#include "models/layers/images/window_pool.h"
#include "models/layers/layer_norm.h"
#include "models/layers/linear.h"
#include "models/layers/rms_norm.h"

namespace troupe::models {
namespace {

using Type = StepOption::Type;
using Presence = StepOption::Presence;

bool has_images(const Flow& input) { return input.kind == Flow::Kind::images; }

// patches

Result<Flow> check_patches(const StepOptions& options, const Flow& input) {
  const auto size = options.integer("size");
  if (!has_images(input)) return not_taken("images", input);
  const auto height = input.shape[1], width = input.shape[2];
  if (height == 0 || width == 0) return not_taken("images of a fixed size", input);
  if (height % size != 0 || width % size != 0)
    return Error{"cuts squares of " + std::to_string(size) + ", which do not divide " +
                 to_text(input)};
  return Flow{.shape = {(height / size) * (width / size), options.integer("out")}};
}

/// A convolution whose stride equals its kernel size is a product with each patch.
void build_patches(const StepContext& context) {
  const auto& options = context.options;
  const auto size = options.integer("size"), out = options.integer("out");
  const auto channels = context.input.shape[0];
  const auto inputs = channels * size * size;
  const auto init = options.init("init");
  context.add(std::make_unique<const Patches>(size));
  context.add(std::make_unique<const Linear>(
      Parameter{.name = context.name + ".weight",
                .shape = {out, channels, size, size},
                .init = init.value_or(Init::by_inputs(inputs)),
                .use = Parameter::Use::matrix,
                .place = place_of(options)},
      Parameter{.name = context.name + ".bias",
                .shape = {out},
                .init = init ? Init::zeros() : Init::by_inputs(inputs)}));
}

// norm

Result<Flow> check_norm(const StepOptions& options, const Flow& input) {
  const auto kind = options.text("kind");
  const bool is_of_groups = kind == "group";
  if (options.has("groups") != is_of_groups)
    return Error{is_of_groups ? "needs groups, the number of groups of channels"
                              : "has groups only with kind = \"group\""};
  if (kind == "batch" || is_of_groups) {
    if (!has_images(input))
      return not_taken("images with kind = \"" + std::string(kind) + "\"", input);
    if (is_of_groups && input.shape[0] % options.integer("groups") != 0)
      return Error{"has " + std::to_string(options.integer("groups")) +
                   " groups, which do not divide the channels of " + to_text(input)};
  } else if (input.kind != Flow::Kind::rows) {
    return not_taken("rows of numbers", input);
  }
  const double offset = options.number("offset");
  if (offset != 0 && (offset != 1 || options.text("kind") != "rms"))
    return Error{"has the offset 0, or with kind = \"rms\" also 1"};
  return input;
}

void build_norm(const StepContext& context) {
  const auto kind = context.options.text("kind");
  const auto eps = static_cast<float>(context.options.number("eps"));
  const auto width = context.input.width();
  const auto offset = static_cast<float>(context.options.number("offset"));
  if (kind == "batch")
    context.add(std::make_unique<const BatchNorm>(context.name, width, eps));
  else if (kind == "group")
    context.add(std::make_unique<const GroupNorm>(context.name, width,
                                                  context.options.integer("groups"), eps));
  else if (kind == "rms")
    context.add_norm(std::make_unique<const RmsNorm>(context.name, width, eps, offset));
  else
    context.add_norm(std::make_unique<const LayerNorm>(context.name, width, eps));
}

// conv

/// Returns the size behind windows, or -1 if they are larger than the image. 0 is any: then they
/// must fit an image of one pixel.
std::int64_t size_after(const Windows& windows, std::int64_t size) {
  const auto room = std::max<std::int64_t>(size, 1) + 2 * windows.padding - windows.kernel;
  if (room < 0) return -1;
  return size == 0 ? 0 : room / windows.stride + 1;
}

/// Returns the images behind windows over images.
Result<Flow> flow_behind(const Windows& windows, std::int64_t channels, const Flow& input) {
  const auto height = size_after(windows, input.shape[1]);
  const auto width = size_after(windows, input.shape[2]);
  if (height < 0 || width < 0)
    return Error{"has a kernel of " + std::to_string(windows.kernel) + ", which is larger than " +
                 to_text(input) +
                 (input.shape[1] == 0 || input.shape[2] == 0
                      ? " can be, where 0 is any size; give more padding"
                      : "")};
  return Flow{.kind = Flow::Kind::images, .shape = {channels, height, width}};
}

Windows windows_of_conv(const StepOptions& options) {
  const auto kernel = options.integer("kernel");
  return {.kernel = kernel,
          .stride = options.integer("stride"),
          .padding = options.integer_or("padding", kernel / 2)};
}

Result<Flow> check_conv(const StepOptions& options, const Flow& input) {
  if (!has_images(input)) return not_taken("images", input);
  const auto groups = options.integer("groups"), out = options.integer("out");
  const auto indivisible = [&](const std::string& channels) {
    return Error{"has groups = " + std::to_string(groups) + ", which does not divide the " +
                 channels + "; each group has as many channels"};
  };
  if (input.shape[0] % groups != 0)
    return indivisible(std::to_string(input.shape[0]) + " channels that it gets");
  if (out % groups != 0) return indivisible(std::to_string(out) + " channels of out");
  return flow_behind(windows_of_conv(options), out, input);
}

/// Without init the variance is 2 / (outputs * kernel^2), by fan-out, as He et al. 2015.
void build_conv(const StepContext& context) {
  const auto& options = context.options;
  const auto out = options.integer("out"), kernel = options.integer("kernel"),
             groups = options.integer("groups");
  const double fan_out = static_cast<double>(out * kernel * kernel);
  context.add(std::make_unique<const Conv2d>(
      Parameter{.name = context.name + ".weight",
                .shape = {out, context.input.shape[0] / groups, kernel, kernel},
                .init = options.init("init").value_or(Init::normal(std::sqrt(2 / fan_out))),
                .place = place_of(options)},
      options.integer("stride"), options.integer_or("padding", kernel / 2), groups));
}

// pool

/// Requires a kernel: only the mean of all pixels has none.
Windows windows_of_pool(const StepOptions& options) {
  const auto kernel = options.integer("kernel");
  return {.kernel = kernel,
          .stride = options.integer_or("stride", kernel),
          .padding = options.integer_or("padding", 0)};
}

Result<Flow> check_pool(const StepOptions& options, const Flow& input) {
  if (!has_images(input)) return not_taken("images", input);
  if (options.text("kind") == "mean") {
    for (const std::string_view name : {"kernel", "stride", "padding"})
      if (options.has(name))
        return Error{"takes the mean of all pixels and has no " + std::string(name) +
                     "; \"average\" has windows"};
    return Flow{.shape = {input.shape[0]}};
  }
  if (!options.has("kernel")) return Error{"needs kernel, the height and width of a window"};
  const auto windows = windows_of_pool(options);
  if (2 * windows.padding > windows.kernel)
    return Error{"has padding = " + std::to_string(windows.padding) +
                 "; at most half of kernel = " + std::to_string(windows.kernel) +
                 " leaves each window a pixel"};
  return flow_behind(windows, input.shape[0], input);
}

void build_pool(const StepContext& context) {
  const auto kind = context.options.text("kind");
  if (kind == "mean")
    context.add(std::make_unique<const AveragePool>());
  else if (kind == "max")
    context.add(std::make_unique<const MaxPool>(windows_of_pool(context.options)));
  else
    context.add(std::make_unique<const WindowMean>(windows_of_pool(context.options)));
}

// upsample

Result<Flow> check_upsample(const StepOptions& options, const Flow& input) {
  if (!has_images(input)) return not_taken("images", input);
  const auto factor = options.integer("factor");
  return Flow{.kind = Flow::Kind::images,
              .shape = {input.shape[0], input.shape[1] * factor, input.shape[2] * factor}};
}

void build_upsample(const StepContext& context) {
  context.add(std::make_unique<const Upsample>(context.options.integer("factor")));
}

}  // namespace

std::vector<StepKind> kinds_for_images() {
  constexpr double most_pixels = 8192;
  return {
      {.name = "patches",
       .help = "Cuts images into squares, and projects each to a row.",
       .options = {{.name = "size",
                    .help = "The height and width of a square.",
                    .presence = Presence::required,
                    .least = 1,
                    .most = most_pixels},
                   {.name = "out",
                    .help = "The width of a row.",
                    .presence = Presence::required,
                    .least = 1,
                    .most = 1 << 24},
                   init_option(),
                   place_option("edge")},
       .check = check_patches,
       .build = build_patches},
      {.name = "norm",
       .help =
           "Normalizes rows (layer, rms), the channels of images (batch), or groups of channels of "
           "each image (group).",
       .options = {{.name = "kind",
                    .type = Type::choice,
                    .help = "The normalization.",
                    .presence = Presence::required,
                    .among = {"layer", "rms", "batch", "group"}},
                   {.name = "eps",
                    .type = Type::number,
                    .help = "What is added to the variance.",
                    .fallback = 1e-5,
                    .least = 1e-12,
                    .most = 1},
                   {.name = "offset",
                    .type = Type::number,
                    .help = "What is added to the scales of rms: 0, or 1 as in Gemma, where scales "
                            "begin at 0.",
                    .fallback = 0.0,
                    .most = 1},
                   {.name = "groups",
                    .help = "With group: the number of groups, which divides the channels.",
                    .least = 1,
                    .most = 1 << 20}},
       .check = check_norm,
       .build = build_norm},
      {.name = "conv",
       .help = "A convolution of images without a bias. Without init, its weights begin as those "
               "of torchvision's ResNet: normal, by fan-out.",
       .options = {{.name = "out",
                    .help = "The channels of the result.",
                    .presence = Presence::required,
                    .least = 1,
                    .most = 1 << 20},
                   {.name = "kernel",
                    .help = "The height and width of the kernel.",
                    .presence = Presence::required,
                    .least = 1,
                    .most = 255},
                   {.name = "stride",
                    .help = "The pixels from one place of the kernel to the next.",
                    .fallback = 1,
                    .least = 1,
                    .most = 255},
                   {.name = "padding",
                    .help = "Zeros at each border. Default: kernel // 2.",
                    .most = 255},
                   {.name = "groups",
                    .help = "The groups of channels: each group of the result reads its own group "
                            "of the input. It divides both numbers of channels.",
                    .fallback = 1,
                    .least = 1,
                    .most = 1 << 20},
                   init_option(),
                   place_option("hidden")},
       .check = check_conv,
       .build = build_conv},
      {.name = "pool",
       .help = "Makes one number of each channel (mean), or of each window of it.",
       .head = StepKind::Head::option,
       .options = {{.name = "kind",
                    .type = Type::choice,
                    .help = "The mean of all pixels, or the greatest number (max) or the mean "
                            "(average) of each window.",
                    .presence = Presence::required,
                    .among = {"mean", "max", "average"}},
                   {.name = "kernel",
                    .help = "The height and width of a window. max and average need it.",
                    .least = 1,
                    .most = 16},
                   {.name = "stride",
                    .help = "The pixels from one window to the next. Default: kernel.",
                    .least = 1,
                    .most = 255},
                   {.name = "padding",
                    .help = "Pixels at each border that max skips and average counts as zeros. "
                            "Default: 0.",
                    .most = 8}},
       .check = check_pool,
       .build = build_pool},
      {.name = "upsample",
       .help = "Enlarges images by a whole factor: each pixel becomes a square of equal numbers.",
       .head = StepKind::Head::option,
       .options = {{.name = "factor",
                    .help = "The factor on height and width.",
                    .presence = Presence::required,
                    .least = 1,
                    .most = 16}},
       .check = check_upsample,
       .build = build_upsample},
  };
}

}  // namespace troupe::models
