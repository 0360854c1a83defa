#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "core/memory/shape.h"
#include "kernels/float16.h"

namespace troupe::kernels::cudnn {

/// The types that cuDNN computes with.
enum class Element : std::uint8_t { f32, f16, bf16, i32, boolean };

template <class Number>
constexpr Element element_of = Element::f32;
template <>
inline constexpr Element element_of<Float16> = Element::f16;
template <>
inline constexpr Element element_of<BFloat16> = Element::bf16;

/// A tensor's layout: for each dimension its size, and the elements from one index to the next.
struct Layout {
  Shape sizes;
  Shape strides;
};

/// Returns a layout without gaps, with the last dimension innermost.
Layout packed(const Shape& sizes);

/// A tensor of a graph, by its number.
struct Term {
  int number = 0;
};

enum class Home : std::uint8_t {
  memory,  // The caller's memory.
  flight,  // Passed from operation to operation, and never written to memory.
  launch,  // A single number, passed at launch.
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

/// How a convolution moves its kernel over an image, both in height and in width.
struct Sweep {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
};

struct Operation {
  Kind kind = Kind::copy;
  std::vector<Term> inputs;
  Term output = {};
  std::int64_t axis = 0;  // For an index.
  Sweep sweep = {};       // For a convolution.
};

/// A computation as data, written like a formula: each function adds one operation and returns its
/// result. Results are in fp32 and never written to memory, unless as() or store() says otherwise.
class Graph {
 public:
  Term input(const Layout& layout, Element element);
  /// Adds a number that is known when the graph runs.
  Term number(int rank);

  /// a b, over the last two dimensions. Fewer heads (dimension 1) in b serve several heads of a.
  Term matmul(Term a, Term b);
  /// Elementwise. A dimension of size 1 is broadcast.
  Term multiply(Term a, Term b);
  Term add(Term a, Term b);
  Term subtract(Term a, Term b);
  Term divide(Term a, Term b);
  Term exp(Term x);
  Term log(Term x);
  Term copy(Term x);
  /// Returns each element's index along a dimension.
  Term index(Term like, int axis);
  /// Returns whether a >= b, elementwise.
  Term at_least(Term a, Term b);
  /// Returns a if `holds` is true, else b, elementwise.
  Term select(Term holds, Term a, Term b);
  /// Reduce one dimension to size 1.
  Term maximum(Term x, int axis);
  Term sum(Term x, int axis);
  /// Adds neighbours of one dimension, so that `left` sums remain.
  Term sums(Term x, int axis, std::int64_t left);
  /// Swaps the last two dimensions.
  Term transpose(Term x);

  /// Adds a convolution of x and w, its gradient for x from w and dy, or its gradient for w from x
  /// and dy. Images are [batch, channels, height, width], weights [out_channels, in_channels,
  /// height, width]; `made` is the size of the result.
  Term convolution(Kind which, Term a, Term b, Sweep sweep, const Shape& made);

  /// Rounds the result to this type.
  Term as(Element element, Term x);
  /// Writes the result to memory, with this layout and rounded to this type.
  void store(Term x, const Layout& layout, Element element);

  /// Returns the tensors and numbers that the caller must give, in the order in which they were
  /// added.
  std::vector<Term> given() const;
  /// Returns the tensors that are written to memory, in the order of the operations.
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
