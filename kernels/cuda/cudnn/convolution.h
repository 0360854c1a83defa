#pragma once

#include "kernels/conv2d.h"
#include "kernels/cuda/cudnn/graph.h"

namespace troupe::kernels::cudnn {

/// The innermost dimension of an image in memory.
enum class Images : std::uint8_t {
  by_channel,  // Width, as in kernels/conv2d.h.
  by_pixel,    // Channels, which tensor cores need.
};

/// A convolution of kernels/conv2d.h. Sums are in fp32.
struct ConvolutionProblem {
  Conv2dShape shape;
  Images images = Images::by_channel;
  Element element = Element::f32;

  auto operator<=>(const ConvolutionProblem&) const = default;
};

/// Builds a graph with inputs x and w and output y.
Graph convolution_forward(const ConvolutionProblem& problem);
/// Builds a graph with inputs w and dy and output dx.
Graph convolution_backward_input(const ConvolutionProblem& problem);
/// Builds a graph with inputs x and dy and output dw, which it overwrites, unlike kernels/conv2d.h.
Graph convolution_backward_weight(const ConvolutionProblem& problem);

/// Builds the graph for one of the three convolution kinds.
Graph convolution(Kind kind, const ConvolutionProblem& problem);

}  // namespace troupe::kernels::cudnn
