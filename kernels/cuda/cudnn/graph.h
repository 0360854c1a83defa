#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "core/memory/shape.h"
#include "kernels/float16.h"

namespace troupe::kernels::cudnn {

/// What cuDNN computes with.
enum class Element : std::uint8_t { f32, f16, bf16, i32, boolean };

template <class Number>
constexpr Element element_of = Element::f32;
template <>
inline constexpr Element element_of<Float16> = Element::f16;
template <>
inline constexpr Element element_of<BFloat16> = Element::bf16;

/// Where a tensor's elements lie: for each dimension its size, and how many elements it is from one
/// index to the next.
struct Layout {
  Shape sizes;
  Shape strides;
};

/// Without gaps, the last dimension innermost.
Layout packed(const Shape& sizes);

/// A tensor of a graph.
struct Term {
  int number = 0;
};

enum class Home : std::uint8_t {
  memory,  // Of whoever runs the graph.
  flight,  // On its way from one operation to the next: never written to memory.
  launch,  // One number, given with the order to run.
};

struct Operand {
  Layout layout;
  Element element = Element::f32;
  Home home = Home::flight;
};

enum class Kind : std::uint8_t {
  matmul,
  multiply,
  add,
  subtract,
  divide,
  exp,
  log,
  copy,
  index,
  at_least,
  select,
  maximum,
  sum,
  reorder,
  convolution,
  convolution_backward_input,
  convolution_backward_weight,
};

/// How a convolution's kernel is moved over an image: the same way in height and width.
struct Sweep {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
};

struct Operation {
  Kind kind = Kind::copy;
  std::vector<Term> inputs;
  Term output = {};
  std::int64_t axis = 0;  // Of an index.
  Sweep sweep = {};       // Of a convolution.
};

/// What is to be computed, as data. It is written down as one writes mathematics: each function
/// adds one operation and returns its result, in fp32 and in flight unless told otherwise.
class Graph {
 public:
  Term input(const Layout& layout, Element element);
  /// A number that is known when the graph is run.
  Term number(int rank);

  /// a b, of the last two dimensions. Fewer heads (dimension 1) in b serve several of a.
  Term matmul(Term a, Term b);
  /// Element by element. A size of 1 serves all of the other's.
  Term multiply(Term a, Term b);
  Term add(Term a, Term b);
  Term subtract(Term a, Term b);
  Term divide(Term a, Term b);
  Term exp(Term x);
  Term log(Term x);
  Term copy(Term x);
  /// For each element its own index along a dimension.
  Term index(Term like, int axis);
  /// Whether a >= b.
  Term at_least(Term a, Term b);
  /// a where it holds, elsewhere b.
  Term select(Term holds, Term a, Term b);
  /// Over one dimension, which is of size 1 then.
  Term maximum(Term x, int axis);
  Term sum(Term x, int axis);
  /// Over neighbours of one dimension, so that so many sums are left.
  Term sums(Term x, int axis, std::int64_t left);
  /// The last two dimensions change places.
  Term transpose(Term x);

  /// One of the three convolutions: of x and w, its gradient for x of w and dy, or its gradient for
  /// w of x and dy. Images are [batch, channels, height, width], weights [out_channels,
  /// in_channels, height, width]; `made` is the size of what comes out.
  Term convolution(Kind which, Term a, Term b, Sweep sweep, const Shape& made);

  /// The result is rounded to this.
  Term as(Element element, Term x);
  /// The result is written to memory, with these strides and rounded to this.
  void store(Term x, const Layout& layout, Element element);

  /// What whoever runs the graph must give, tensors and numbers, in the order in which they came
  /// in.
  std::vector<Term> given() const;
  /// What is written to memory, in the order of the operations.
  std::vector<Term> made() const;

  const std::vector<Operand>& operands() const { return operands_; }
  const std::vector<Operation>& operations() const { return operations_; }

 private:
  const Operand& operator[](Term term) const;
  Operand& operator[](Term term);
  Term keep(const Operand& operand);
  Term perform(Operation operation, const Shape& sizes, Element element = Element::f32);
  Term elementwise(Kind kind, Term a, Term b);

  std::vector<Operand> operands_;
  std::vector<Operation> operations_;
};

}  // namespace troupe::kernels::cudnn
