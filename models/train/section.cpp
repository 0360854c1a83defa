#include "models/train/section.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "kernels/steps.h"
#include "models/train/trained.h"
#include "models/train/update_rule.h"

namespace troupe::models {
namespace {

/// Owned parameters laid end to end, and the places where a cut is allowed.
class Line {
 public:
  void add(std::int64_t count, bool is_whole) {
    spans_.push_back({length_, count, is_whole ? count : kernels::block_of_sums});
    length_ += count;
  }
  std::int64_t length() const { return length_; }
  std::int64_t begin_of(std::size_t i) const { return spans_[i].begin; }
  std::int64_t end_of(std::size_t i) const { return spans_[i].begin + spans_[i].count; }

  /// Returns the allowed cut nearest to `place`.
  std::int64_t cut_near(std::int64_t place) const {
    for (const auto& [begin, count, grain] : spans_) {
      if (place >= begin + count) continue;
      const std::int64_t within = place - begin;
      const std::int64_t below = within / grain * grain, above = std::min(below + grain, count);
      return begin + (within - below <= above - within ? below : above);
    }
    return length_;
  }

 private:
  struct Span {
    std::int64_t begin = 0, count = 0, grain = 1;
  };
  std::vector<Span> spans_;
  std::int64_t length_ = 0;
};

bool is_whole(const Section::Piece& piece, const Parameter& parameter) {
  return piece.count == parameter.shape.count();
}

/// Copies a piece into the whole tensor. Allocates that with the first piece.
void put(Stream& stream, const Tensor& from, const Section::Piece& piece,
         const Parameter& parameter, Tensor& whole) {
  if (is_whole(piece, parameter)) {
    whole = stream.to_here(from);
    return;
  }
  if (whole.empty()) whole = stream.make(parameter.shape, from.dtype());
  Tensor to = piece_of(whole, piece);
  stream.copy(from, to);
}

/// Returns the first slot of each name.
std::map<std::string_view, std::size_t> first_slots(const std::vector<Parameter>& parameters) {
  std::map<std::string_view, std::size_t> first;
  for (std::size_t slot = 0; slot < parameters.size(); ++slot)
    first.emplace(parameters[slot].name, slot);
  return first;
}

}  // namespace

std::vector<Section> cut_into_sections(const OptimizerConfig& config,
                                       const StalenessOptions& staleness,
                                       const std::vector<Parameter>& parameters,
                                       const std::vector<std::string>& borrowed, int count) {
  const auto owned = owned_slots(parameters, borrowed);
  Line line;
  for (const auto& slots : owned) {
    const Parameter& parameter = parameters[slots[0]];
    line.add(parameter.shape.count(), rule_for(config, staleness, parameter).wants_whole);
  }
  std::vector<Section> sections(static_cast<std::size_t>(count));
  sections[0].has_buffers = true;
  for (std::int64_t k = 0; k < count; ++k) {
    auto& pieces = sections[static_cast<std::size_t>(k)].pieces;
    const std::int64_t begin = line.cut_near(line.length() * k / count);
    const std::int64_t end = line.cut_near(line.length() * (k + 1) / count);
    for (std::size_t i = 0; i < owned.size(); ++i) {
      const std::int64_t first = std::max(begin, line.begin_of(i));
      const std::int64_t last = std::min(end, line.end_of(i));
      for (const auto slot : owned[i])
        if (first < last) pieces.push_back({slot, first - line.begin_of(i), last - first});
    }
    std::ranges::sort(pieces, {}, &Section::Piece::slot);
  }
  return sections;
}

Section seen_from(const std::vector<Parameter>& user, const Section& section,
                  const std::vector<Parameter>& owner) {
  Section seen;
  for (std::size_t slot = 0; slot < user.size(); ++slot)
    for (const auto& piece : section.pieces)
      if (owner[piece.slot].name == user[slot].name) {
        seen.pieces.push_back({slot, piece.first, piece.count});
        break;
      }
  return seen;
}

std::vector<Parameter> parameters_of(const Section& section,
                                     const std::vector<Parameter>& parameters) {
  std::vector<Parameter> pieces;
  for (const auto& piece : section.pieces) {
    Parameter parameter = parameters[piece.slot];
    if (!is_whole(piece, parameter)) {
      parameter.shape = {piece.count};
      parameter.use = Parameter::Use::elements;
      parameter.first = piece.first;
    }
    pieces.push_back(std::move(parameter));
  }
  return pieces;
}

Tensor piece_of(const Tensor& whole, const Section::Piece& piece) {
  if (whole.empty() || piece.count == whole.count()) return whole;
  return whole.reshaped({whole.count()}).slice(piece.first, piece.count);
}

GradientShare part_of(const GradientShare& share, const Section& section, std::size_t slots) {
  GradientShare part;
  part.rate_share = share.rate_share;
  part.targets = share.targets;
  if (section.has_buffers) part.statistics = share.statistics;
  for (const auto& sum : share.sums) {
    auto& of_section = part.sums.emplace_back(PartialSum{sum.first_group, sum.groups, {}});
    for (std::size_t set = 0; set < sum.slots.size(); set += slots)
      for (const auto& piece : section.pieces)
        of_section.slots.push_back(piece_of(sum.slots[set + piece.slot], piece));
  }
  return part;
}

Version without_frozen(const Version& version, const std::vector<Parameter>& parameters) {
  if (std::ranges::none_of(parameters, &Parameter::frozen)) return version;
  auto weights = std::make_shared<Weights>(*version.weights);
  for (std::size_t slot = 0; slot < parameters.size(); ++slot)
    if (parameters[slot].frozen) weights->slots[slot] = {};
  return {std::move(weights), version.moments};
}

Version join(Stream& stream, const std::vector<Parameter>& parameters,
             std::span<const Section> sections, std::span<const Version> parts) {
  assert(sections.size() == parts.size());
  auto weights = std::make_shared<Weights>();
  weights->version = parts[0].weights->version;
  weights->loss_scale = parts[0].weights->loss_scale;
  weights->slots.resize(parameters.size());
  const auto first = first_slots(parameters);
  std::map<std::size_t, std::vector<Tensor>> moments;  // Keyed by first slot.
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const auto& [part, part_moments] = parts[k];
    assert(part->version == weights->version && part->loss_scale == weights->loss_scale);
    assert(part->slots.size() == sections[k].pieces.size());
    if (sections[k].has_buffers)
      for (const auto& buffer : part->buffers) weights->buffers.push_back(stream.to_here(buffer));
    std::size_t met = 0;
    for (std::size_t j = 0; j < part->slots.size(); ++j) {
      const auto& piece = sections[k].pieces[j];
      const Parameter& parameter = parameters[piece.slot];
      const bool is_first_use = first.at(parameter.name) == piece.slot;
      // Matrices that another device packed are packed again later.
      if (is_whole(piece, parameter) && !part->slots[j].value.empty() &&
          part->slots[j].value.place() == stream.place())
        weights->slots[piece.slot] = part->slots[j];
      if (!is_first_use) continue;
      if (!part->slots[j].value.empty())
        put(stream, part->slots[j].value, piece, parameter, weights->slots[piece.slot].value);
      if (part_moments.empty() || parameter.frozen) continue;
      const auto& from = part_moments[met++];
      auto& to = moments[piece.slot];
      to.resize(from.size());
      for (std::size_t i = 0; i < from.size(); ++i) put(stream, from[i], piece, parameter, to[i]);
    }
  }
  for (const auto& section : sections)
    for (const auto& piece : section.pieces)
      weights->slots[piece.slot].value =
          weights->slots[first.at(parameters[piece.slot].name)].value;
  Version whole{std::move(weights), {}};
  for (auto& [slot, of_one] : moments) whole.moments.push_back(std::move(of_one));
  return whole;
}

}  // namespace troupe::models
