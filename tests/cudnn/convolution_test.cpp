// Checks that cuDNN has engines for our convolutions on an H200. No GPU is used.

#include "kernels/cuda/cudnn/convolution.h"

#include <array>

#include "h200.h"
#include "kernels/cuda/cudnn/engines.h"

namespace troupe::kernels::cudnn {
namespace {

/// The shapes of config/resnet-tiny.toml in the order of the model, then the widest of ResNet-18
/// for images of 32 x 32.
constexpr std::array<Conv2dShape, 11> shapes{{
    {16, 1, 28, 28, 16, 3, 1, 1},
    {16, 16, 28, 28, 16, 3, 1, 1},
    {16, 16, 28, 28, 32, 3, 2, 1},
    {16, 32, 14, 14, 32, 3, 1, 1},
    {16, 16, 28, 28, 32, 1, 2, 0},
    {16, 32, 14, 14, 64, 3, 2, 1},
    {16, 64, 7, 7, 64, 3, 1, 1},
    {16, 32, 14, 14, 64, 1, 2, 0},
    {128, 3, 32, 32, 64, 3, 1, 1},
    {128, 256, 8, 8, 512, 3, 2, 1},
    {128, 512, 4, 4, 512, 3, 1, 1},
}};

void check_all(const ConvolutionProblem& problem) {
  const auto& shape = problem.shape;
  INFO(shape.in_channels << " x " << shape.height << " x " << shape.width << " to "
                         << shape.out_channels << ", kernel " << shape.kernel << ", stride "
                         << shape.stride);
  const Gpu gpu = h200();
  CHECK(refusal_of(plan_for(convolution_forward(problem), gpu)) == "");
  CHECK(refusal_of(plan_for(convolution_backward_input(problem), gpu)) == "");
  CHECK(refusal_of(plan_for(convolution_backward_weight(problem), gpu)) == "");
}

}  // namespace

TEST_CASE("cuDNN accepts convolutions in fp32 with our memory layout", "[cudnn]") {
  for (const auto& shape : shapes) check_all({.shape = shape});
}

TEST_CASE("cuDNN accepts convolutions in bf16 with images by channel or by pixel", "[cudnn]") {
  for (const auto& shape : shapes)
    for (const Images images : {Images::by_channel, Images::by_pixel})
      check_all({.shape = shape, .images = images, .element = Element::bf16});
}

TEST_CASE("cuDNN accepts convolutions in fp16 with our memory layout", "[cudnn]") {
  for (const auto& shape : shapes) check_all({.shape = shape, .element = Element::f16});
}

// Tensor cores need channels innermost; the library copies images with another layout.
TEST_CASE("a convolution of images by pixel needs no workspace for copies", "[cudnn]") {
  const auto workspace = [](Images images) {
    const ConvolutionProblem problem{
        .shape = shapes.back(), .images = images, .element = Element::bf16};
    const auto plan = plan_for(convolution_forward(problem), h200());
    REQUIRE(error_of(plan) == "");
    return plan->workspace();
  };
  const auto& shape = shapes.back();
  const std::int64_t image = 2 * shape.batch * shape.in_channels * shape.height * shape.width;
  CHECK(workspace(Images::by_pixel) < 1024);
  CHECK(workspace(Images::by_channel) > image);
}

// The planner counts the same (kernels/rehearsed/device.cpp).
TEST_CASE("a 16-bit convolution needs at most workspace for copies of three tensors and sums",
          "[cudnn]") {
  constexpr std::int64_t beside = 256, sums = 2 << 20;
  const auto in_steps = [](std::int64_t channels) { return (channels + 7) / 8 * 8; };
  const Gpu gpu = h200();
  const auto workspace = [&](const Graph& graph) {
    const auto plan = plan_for(graph, gpu);
    REQUIRE(error_of(plan) == "");
    return plan->workspace();
  };
  for (const auto& shape : shapes) {
    const ConvolutionProblem problem{.shape = shape, .element = Element::bf16};
    const std::int64_t in = in_steps(shape.in_channels), out = in_steps(shape.out_channels);
    const std::int64_t copies = 2 * (shape.batch * in * shape.height * shape.width +
                                     out * in * shape.kernel * shape.kernel +
                                     shape.batch * out * shape.out_height() * shape.out_width());
    CHECK(workspace(convolution_forward(problem)) <= copies + beside);
    CHECK(workspace(convolution_backward_input(problem)) <= copies + beside);
    CHECK(workspace(convolution_backward_weight(problem)) <= copies + beside + sums);
  }
}

TEST_CASE("cuDNN refuses a kernel that is larger than the image", "[cudnn]") {
  const Conv2dShape shape{
      .batch = 16, .in_channels = 1, .height = 2, .width = 2, .out_channels = 8, .kernel = 3};
  CHECK(says(error_of(engines_for(convolution_forward({.shape = shape}), h200())),
             "operation 1 of 1: CUDNN_STATUS_BAD_PARAM"));
}

}  // namespace troupe::kernels::cudnn
