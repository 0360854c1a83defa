#pragma once

#include "kernels/conv2d.h"
#include "kernels/cuda/cudnn/graph.h"

namespace troupe::kernels::cudnn {

/// Which of an image's dimensions is innermost in memory.
enum class Images : std::uint8_t {
  by_channel,  // Width: as in kernels/conv2d.h.
  by_pixel,    // Channels, which tensor cores ask for.
};

/// What kernels/conv2d.h computes. Sums are in fp32.
struct ConvolutionProblem {
  Conv2dShape shape;
  Images images = Images::by_channel;
  Element element = Element::f32;

  auto operator<=>(const ConvolutionProblem&) const = default;
};

/// x and w come in, y goes out.
Graph convolution_forward(const ConvolutionProblem& problem);
/// w and dy come in, dx goes out.
Graph convolution_backward_input(const ConvolutionProblem& problem);
/// x and dy come in, dw goes out; unlike in kernels/conv2d.h it is overwritten.
Graph convolution_backward_weight(const ConvolutionProblem& problem);

/// The one of the three that Graph::convolution() knows by this name.
Graph convolution(Kind kind, const ConvolutionProblem& problem);

}  // namespace troupe::kernels::cudnn
