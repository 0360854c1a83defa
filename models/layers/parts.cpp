#include "models/layers/parts.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "models/arithmetic.h"

namespace troupe::models {
namespace {

template <class Span, class Range>
auto cut(Span span, const Range& range) {
  return span.subspan(range.first, range.count);
}

template <class Item>
void append(std::vector<Item>& all, std::vector<Item> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

void Parts::add(const Layer& layer) {
  auto parameters = layer.parameters();
  auto buffers = layer.buffers();
  const auto saved = static_cast<std::size_t>(layer.saved());
  const auto cached = static_cast<std::size_t>(layer.cached());
  pieces_.push_back({.layer = &layer,
                     .parameters = {parameters_.size(), parameters.size()},
                     .buffers = {buffers_.size(), buffers.size()},
                     .saved = {saved_, saved},
                     .caches = {cached_, cached}});
  append(parameters_, std::move(parameters));
  append(buffers_, std::move(buffers));
  saved_ += saved;
  cached_ += cached;
}

Reach Parts::reach_from(RowSource& stream, KeptSources& kept) const {
  Reach most = Reach::own_row;
  for (const auto& piece : pieces_) most = std::max(most, piece.layer->reach_from(stream, kept));
  return most;
}

Reach Parts::reach_of_branches(RowSource stream, KeptSources& kept) const {
  Reach most = Reach::own_row;
  for (const auto& piece : pieces_) {
    RowSource made = stream;
    most = std::max(most, piece.layer->reach_from(made, kept));
    if (made != stream) return Reach::all_rows;
  }
  return most;
}

void Parts::freeze(const std::set<std::string>& names) {
  for (auto& parameter : parameters_) parameter.frozen = names.contains(parameter.name);
  frozen_.clear();
  if (std::ranges::none_of(parameters_, &Parameter::frozen)) return;
  for (const auto& parameter : parameters_) frozen_.push_back(parameter.frozen ? 1 : 0);
}

bool Parts::is_trained(int part) const {
  return std::ranges::any_of(cut(std::span(parameters_), piece(part).parameters),
                             [](const Parameter& parameter) { return !parameter.frozen; });
}

Shape Parts::output(Shape shape) const {
  for (const auto& piece : pieces_) shape = piece.layer->output(shape);
  return shape;
}

Work Parts::work(Shape shape) const {
  Work work;
  for (const auto& piece : pieces_) {
    work.add(piece.layer->work(shape));
    shape = piece.layer->output(shape);
  }
  return work;
}

Shape Parts::output_with(Shape shape, KeptShapes& kept) const {
  for (const auto& piece : pieces_) shape = piece.layer->output_with(shape, kept);
  return shape;
}

Work Parts::work_with(Shape shape, KeptShapes& kept) const {
  Work work;
  for (const auto& piece : pieces_) {
    work.add(piece.layer->work_with(shape, kept));
    shape = piece.layer->output_with(shape, kept);
  }
  return work;
}

Layer::In Parts::own(const Piece& piece, const Layer::In& whole) {
  return {.pass = whole.pass,
          .weights = cut(whole.weights, piece.parameters),
          .buffers = cut(whole.buffers, piece.buffers),
          .input_gradient = whole.input_gradient,
          .frozen = whole.frozen.empty() ? whole.frozen : cut(whole.frozen, piece.parameters),
          .caches = whole.caches.empty() ? whole.caches : cut(whole.caches, piece.caches)};
}

Tensor Parts::forward(int part, const Layer::In& whole, Tensor x, Layer::SavedSpan saved,
                      Layer::SavedSpan statistics) const {
  const auto& own_piece = piece(part);
  return own_piece.layer->forward(own(own_piece, whole), std::move(x), cut(saved, own_piece.saved),
                                  cut(statistics, own_piece.buffers));
}

Tensor Parts::backward_input(int part, const Layer::In& whole, Tensor dy,
                             Layer::SavedSpan saved) const {
  const auto& own_piece = piece(part);
  return own_piece.layer->backward_input(own(own_piece, whole), std::move(dy),
                                         cut(saved, own_piece.saved));
}

void Parts::backward_weight(int part, const Layer::In& whole, Layer::SavedSpan saved,
                            Layer::SavedSpan gradients) const {
  const auto& own_piece = piece(part);
  const auto [first, count] = own_piece.parameters;
  const auto inside = own(own_piece, whole);
  const auto is_frozen = [](std::uint8_t frozen) { return frozen != 0; };
  if (!inside.frozen.empty() && std::ranges::all_of(inside.frozen, is_frozen)) {
    std::ranges::fill(cut(saved, own_piece.saved), Tensor());
    return;
  }
  // Allocates late, after later parts have freed their saved tensors. The first product allocates a
  // matrix gradient, which saves writing and reading zeros.
  for (auto slot = first; slot < first + count; ++slot)
    if (const auto& parameter = parameters_[slot];
        parameter.use == Parameter::Use::elements && gradients[slot].empty()) {
      const Stream::Lasting lasting(whole.pass.stream);
      gradients[slot] = filled(whole.pass.stream, parameter.shape, parameter.type, 0);
    }
  const auto made = cut(gradients, own_piece.parameters);
  own_piece.layer->backward_weight(inside, cut(saved, own_piece.saved), made);
  for (std::size_t i = 0; i < count; ++i)
    if (inside.is_frozen(i)) made[i] = {};
}

Layer::SavedSpan Parts::saved_by(int part, Layer::SavedSpan saved) const {
  return cut(saved, piece(part).saved);
}

}  // namespace troupe::models
