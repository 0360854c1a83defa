#include "kernels/cuda/cudnn/convolution.h"

#include <cassert>

namespace troupe::kernels::cudnn {
namespace {

Layout laid_out(const Shape& sizes, Images images) {
  if (images == Images::by_channel) return packed(sizes);
  const std::int64_t channels = sizes[1], height = sizes[2], width = sizes[3];
  return {.sizes = sizes, .strides = {height * width * channels, 1, width * channels, channels}};
}

Layout inputs(const ConvolutionProblem& problem) {
  const auto& s = problem.shape;
  return laid_out({s.batch, s.in_channels, s.height, s.width}, problem.images);
}
Layout weights(const ConvolutionProblem& problem) {
  const auto& s = problem.shape;
  return laid_out({s.out_channels, s.in_channels, s.kernel, s.kernel}, problem.images);
}
Layout outputs(const ConvolutionProblem& problem) {
  const auto& s = problem.shape;
  return laid_out({s.batch, s.out_channels, s.out_height(), s.out_width()}, problem.images);
}

struct Roles {
  Layout a, b;  // In the order of Graph::convolution().
  Layout made;
};

Graph one_operation(const ConvolutionProblem& problem, Kind which, const Roles& roles) {
  const Sweep sweep{.stride = problem.shape.stride, .padding = problem.shape.padding};
  Graph graph;
  const Term a = graph.input(roles.a, problem.element);
  const Term b = graph.input(roles.b, problem.element);
  graph.store(graph.convolution(which, a, b, sweep, roles.made.sizes), roles.made, problem.element);
  return graph;
}

}  // namespace

Graph convolution_forward(const ConvolutionProblem& problem) {
  return one_operation(problem, Kind::convolution,
                       {inputs(problem), weights(problem), outputs(problem)});
}
Graph convolution_backward_input(const ConvolutionProblem& problem) {
  return one_operation(problem, Kind::convolution_backward_input,
                       {weights(problem), outputs(problem), inputs(problem)});
}
Graph convolution_backward_weight(const ConvolutionProblem& problem) {
  return one_operation(problem, Kind::convolution_backward_weight,
                       {inputs(problem), outputs(problem), weights(problem)});
}

Graph convolution(Kind kind, const ConvolutionProblem& problem) {
  if (kind == Kind::convolution) return convolution_forward(problem);
  if (kind == Kind::convolution_backward_input) return convolution_backward_input(problem);
  assert(kind == Kind::convolution_backward_weight);
  return convolution_backward_weight(problem);
}

}  // namespace troupe::kernels::cudnn
