#include "models/train/packed_gradients.h"

#include <cassert>
#include <numeric>

#include "models/arithmetic.h"

namespace troupe::models {
namespace {

/// Returns a piece's size, rounded up so that the next piece is aligned for any kernel. Frozen
/// parameters have no gradient.
std::int64_t room_of(const Section::Piece& piece, const std::vector<Parameter>& parameters) {
  if (parameters[piece.slot].frozen) return 0;
  constexpr std::int64_t step = 64;
  return (piece.count + step - 1) / step * step;
}

}  // namespace

PackedGradients pack(Stream& stream, const GradientShare& share,
                     const std::vector<Parameter>& parameters, std::span<const Section> sections) {
  PackedGradients packed;
  for (const auto& section : sections) {
    auto& size = packed.sizes.emplace_back(0);
    for (const auto& piece : section.pieces) size += room_of(piece, parameters);
  }
  const auto whole = std::accumulate(packed.sizes.begin(), packed.sizes.end(), std::int64_t{0});
  packed.numbers = filled(stream, {whole}, DType::f32, 0);
  for (const auto& sum : share.sums) {
    assert(sum.slots.size() == parameters.size() && "late gradients are mended one by one");
    std::int64_t first = 0;
    for (const auto& section : sections)
      for (const auto& piece : section.pieces) {
        const auto gradient = piece_of(sum.slots[piece.slot], piece);
        if (!gradient.empty()) {
          auto place = packed.numbers.slice(first, piece.count);
          accumulate(stream, place, gradient);
        }
        first += room_of(piece, parameters);
      }
  }
  return packed;
}

PartialSum unpack(const PackedGradients& packed, std::size_t number,
                  const std::vector<Parameter>& parameters, const Section& section, int groups) {
  PartialSum sum{0, groups, {}};
  auto first =
      std::accumulate(packed.sizes.begin(),
                      packed.sizes.begin() + static_cast<std::ptrdiff_t>(number), std::int64_t{0});
  const auto pieces = parameters_of(section, parameters);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto& piece = section.pieces[i];
    sum.slots.push_back(pieces[i].frozen
                            ? Tensor()
                            : packed.numbers.slice(first, piece.count).reshaped(pieces[i].shape));
    first += room_of(piece, parameters);
  }
  return sum;
}

}  // namespace troupe::models
