#include "kernels/cuda/cudnn/graph.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

namespace troupe::kernels::cudnn {
namespace {

/// Returns the sizes with one dimension changed.
Shape with(const Shape& sizes, int dimension, std::int64_t size) {
  Shape changed;
  for (int d = 0; d < sizes.rank(); ++d) changed.append(d == dimension ? size : sizes[d]);
  return changed;
}

Shape transposed(const Shape& shape) {
  const int last = shape.rank() - 1;
  return with(with(shape, last, shape[last - 1]), last - 1, shape[last]);
}

Shape both(const Shape& a, const Shape& b) {
  assert(a.rank() == b.rank());
  Shape sizes;
  for (int d = 0; d < a.rank(); ++d) {
    assert(a[d] == b[d] || a[d] == 1 || b[d] == 1);
    sizes.append(std::max(a[d], b[d]));
  }
  return sizes;
}

}  // namespace

Layout packed(const Shape& sizes) {
  std::array<std::int64_t, Shape::max_rank> strides{};
  std::int64_t stride = 1;
  for (int d = sizes.rank() - 1; d >= 0; --d) {
    strides[static_cast<std::size_t>(d)] = stride;
    stride *= sizes[d];
  }
  Layout layout{.sizes = sizes, .strides = {}};
  for (int d = 0; d < sizes.rank(); ++d)
    layout.strides.append(strides[static_cast<std::size_t>(d)]);
  return layout;
}

const Operand& Graph::operator[](Term term) const {
  return operands_.at(static_cast<std::size_t>(term.number));
}
Operand& Graph::operator[](Term term) {
  return operands_.at(static_cast<std::size_t>(term.number));
}

Term Graph::keep(const Operand& operand) {
  operands_.push_back(operand);
  return {static_cast<int>(operands_.size()) - 1};
}

Term Graph::perform(Operation operation, const Shape& sizes, Element element) {
  operation.output = keep({.layout = packed(sizes), .element = element});
  operations_.push_back(std::move(operation));
  return operations_.back().output;
}

Term Graph::elementwise(Kind kind, Term a, Term b) {
  return perform({.kind = kind, .inputs = {a, b}},
                 both((*this)[a].layout.sizes, (*this)[b].layout.sizes));
}

Term Graph::input(const Layout& layout, Element element) {
  return keep({.layout = layout, .element = element, .home = Home::memory});
}

Term Graph::number(int rank) {
  Shape ones;
  for (int d = 0; d < rank; ++d) ones.append(1);
  return keep({.layout = packed(ones), .element = Element::f32, .home = Home::launch});
}

Term Graph::matmul(Term a, Term b) {
  const Shape& rows = (*this)[a].layout.sizes;
  const Shape& columns = (*this)[b].layout.sizes;
  const int last = rows.rank() - 1;
  assert(rows[last] == columns[last - 1]);
  return perform({.kind = Kind::matmul, .inputs = {a, b}}, with(rows, last, columns[last]));
}

Term Graph::multiply(Term a, Term b) { return elementwise(Kind::multiply, a, b); }
Term Graph::add(Term a, Term b) { return elementwise(Kind::add, a, b); }
Term Graph::subtract(Term a, Term b) { return elementwise(Kind::subtract, a, b); }
Term Graph::divide(Term a, Term b) { return elementwise(Kind::divide, a, b); }

Term Graph::exp(Term x) {
  return perform({.kind = Kind::exp, .inputs = {x}}, (*this)[x].layout.sizes);
}
Term Graph::log(Term x) {
  return perform({.kind = Kind::log, .inputs = {x}}, (*this)[x].layout.sizes);
}
Term Graph::copy(Term x) {
  return perform({.kind = Kind::copy, .inputs = {x}}, (*this)[x].layout.sizes);
}

Term Graph::index(Term like, int axis) {
  return perform({.kind = Kind::index, .inputs = {like}, .axis = axis}, (*this)[like].layout.sizes,
                 Element::i32);
}

Term Graph::at_least(Term a, Term b) {
  return as(Element::boolean, elementwise(Kind::at_least, a, b));
}

Term Graph::select(Term holds, Term a, Term b) {
  return perform({.kind = Kind::select, .inputs = {a, b, holds}}, (*this)[holds].layout.sizes);
}

Term Graph::maximum(Term x, int axis) {
  return perform({.kind = Kind::maximum, .inputs = {x}}, with((*this)[x].layout.sizes, axis, 1));
}
Term Graph::sum(Term x, int axis) { return sums(x, axis, 1); }
Term Graph::sums(Term x, int axis, std::int64_t left) {
  return perform({.kind = Kind::sum, .inputs = {x}}, with((*this)[x].layout.sizes, axis, left));
}

Term Graph::transpose(Term x) {
  const Operand from = (*this)[x];
  const Term y =
      perform({.kind = Kind::reorder, .inputs = {x}}, transposed(from.layout.sizes), from.element);
  // The elements stay in place; only the strides change.
  (*this)[y].layout.strides = transposed(from.layout.strides);
  return y;
}

Term Graph::convolution(Kind which, Term a, Term b, Sweep sweep, const Shape& made) {
  return perform({.kind = which, .inputs = {a, b}, .sweep = sweep}, made);
}

Term Graph::as(Element element, Term x) {
  (*this)[x].element = element;
  return x;
}

void Graph::store(Term x, const Layout& layout, Element element) {
  assert((*this)[x].layout.sizes == layout.sizes);
  (*this)[x] = {.layout = layout, .element = element, .home = Home::memory};
}

std::vector<Term> Graph::given() const {
  std::vector<bool> is_made(operands_.size());
  for (const auto& operation : operations_)
    is_made[static_cast<std::size_t>(operation.output.number)] = true;
  std::vector<Term> given;
  for (std::size_t i = 0; i < operands_.size(); ++i)
    if (!is_made[i]) given.push_back({static_cast<int>(i)});
  return given;
}

std::vector<Term> Graph::made() const {
  std::vector<Term> made;
  for (const auto& operation : operations_)
    if ((*this)[operation.output].home == Home::memory) made.push_back(operation.output);
  return made;
}

}  // namespace troupe::kernels::cudnn
