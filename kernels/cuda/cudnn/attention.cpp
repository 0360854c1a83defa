#include "kernels/cuda/cudnn/attention.h"

// cuDNN recognizes attention by the shape of its graph. The operations between the two products may
// vary, and cuDNN takes a wrong formula as readily as the right one. If the softmax has another
// shape than here, 9.19 crashes instead of refusing the graph.
namespace troupe::kernels::cudnn {
namespace {

constexpr int rank = 4;  // The dimensions are [batch, heads, position, number].
constexpr int heads = 1;
constexpr int positions = 2;
constexpr int numbers = 3;

/// Returns [batch, heads, length, width] for numbers stored as [batch, length, heads, width].
Layout heads_of(const AttentionShape& shape, std::int64_t heads, std::int64_t row) {
  return {.sizes = {shape.batch, heads, shape.length, shape.width},
          .strides = {shape.length * row, shape.width, row, 1}};
}
/// Returns [batch, heads, width, length] for the same storage.
Layout transposed_heads_of(const AttentionShape& shape, std::int64_t heads, std::int64_t row) {
  return {.sizes = {shape.batch, heads, shape.width, shape.length},
          .strides = {shape.length * row, shape.width, 1, row}};
}
/// Returns [batch, heads, length, 1].
Layout one_a_row(const AttentionShape& shape) {
  return packed({shape.batch, shape.heads, shape.length, 1});
}

/// Returns the scores with -infinity for keys that a query does not see.
Term masked(Graph& graph, Mask mask, Term scores) {
  if (mask == Mask::full) return scores;
  const Term nothing = graph.number(rank);
  const Term query = graph.index(scores, positions);
  const Term key = graph.index(scores, numbers);
  return graph.select(graph.at_least(query, key), scores, nothing);
}

/// Adds the gradients of all query heads that share a head of keys or values.
Term of_groups(Graph& graph, const AttentionProblem& problem, Term gradients) {
  if (problem.shape.kv_heads == problem.shape.heads) return gradients;
  return graph.sums(graph.as(problem.element, gradients), heads, problem.shape.kv_heads);
}

}  // namespace

Graph attention_forward(const AttentionProblem& problem) {
  const auto& shape = problem.shape;
  const auto element = problem.element;
  Graph graph;
  const Term q = graph.input(heads_of(shape, shape.heads, problem.q_row), element);
  const Term k = graph.input(transposed_heads_of(shape, shape.kv_heads, problem.k_row), element);
  const Term v = graph.input(heads_of(shape, shape.kv_heads, problem.v_row), element);
  const Term scale = graph.number(rank);

  const Term scaled = graph.multiply(graph.matmul(q, k), scale);
  const Term scores = masked(graph, shape.mask, scaled);
  const Term peak = graph.maximum(scores, numbers);
  const Term powers = graph.exp(graph.subtract(scores, peak));
  const Term sum = graph.sum(powers, numbers);
  graph.store(graph.add(peak, graph.log(sum)), one_a_row(shape), Element::f32);
  const Term shares = graph.as(element, graph.divide(powers, sum));
  graph.store(graph.matmul(shares, v), heads_of(shape, shape.heads, problem.out_row), element);
  return graph;
}

Graph attention_backward(const AttentionProblem& problem, Sums sums) {
  const auto& shape = problem.shape;
  const auto element = problem.element;
  const Layout queries = heads_of(shape, shape.heads, problem.q_row);
  const Layout outputs = heads_of(shape, shape.heads, problem.out_row);
  Graph graph;
  const Term q = graph.input(queries, element);
  const Term k = graph.input(transposed_heads_of(shape, shape.kv_heads, problem.k_row), element);
  const Term v = graph.input(transposed_heads_of(shape, shape.kv_heads, problem.v_row), element);
  const Term out = graph.input(outputs, element);
  const Term dout = graph.input(outputs, element);
  const Term logsumexp = graph.input(one_a_row(shape), Element::f32);
  const Term scale = graph.number(rank);
  const Term one = graph.number(rank);

  // The term that the softmax subtracts from the gradients of a row's scores. NVIDIA's own graphs
  // multiply it by a dropout factor, so this graph needs one too.
  const Term taken = graph.multiply(graph.sum(graph.multiply(dout, out), numbers), one);
  graph.store(taken, one_a_row(shape), Element::f32);

  const Term scaled = graph.multiply(graph.matmul(q, k), scale);
  const Term logs = masked(graph, shape.mask, graph.subtract(scaled, logsumexp));
  const Term shares = graph.exp(logs);
  const Term shares_of_keys = graph.as(element, graph.transpose(shares));
  const Term dv = of_groups(graph, problem, graph.matmul(shares_of_keys, dout));
  graph.store(dv, heads_of(shape, shape.kv_heads, problem.v_row), element);

  const Term dshares = graph.subtract(graph.matmul(dout, v), taken);
  const Term dscores = graph.multiply(graph.multiply(dshares, shares), scale);
  const Term dscores_of_keys = graph.as(element, graph.transpose(dscores));
  const Term dk = of_groups(graph, problem, graph.matmul(dscores_of_keys, q));
  graph.store(dk, heads_of(shape, shape.kv_heads, problem.k_row), element);

  const Term dq = graph.matmul(graph.as(element, dscores), graph.transpose(k));
  if (sums == Sums::in_order) {
    graph.store(dq, queries, element);
  } else {
    graph.store(dq, packed(queries.sizes), Element::f32);
    graph.store(graph.copy(dq), queries, element);
  }
  return graph;
}

}  // namespace troupe::kernels::cudnn
