#include "schedules/partition/partition_sums.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace troupe::schedules {

ChainSums::ChainSums(const Chain& chain) : passing_(1) {
  const int count = static_cast<int>(chain.pieces.size());
  std::vector<int> merged_piece(count);
  std::vector<bool> required;
  Piece sum;
  const auto close = [&] {
    work_.push_back(sum.work.count());
    weights_.push_back(sum.weights);
    fixed_.push_back(sum.fixed);
    stash_.push_back(sum.stash);
    reduced_.push_back(sum.reduced);
  };
  for (int i = 0; i < count; ++i) {
    const Piece& piece = chain.pieces[i];
    if (i == 0 || piece.cut != Cut::forbidden) {
      close();
      place_in_chain_.push_back(i);
      boundary_.push_back(i == 0 ? 0 : piece.boundary);
      required.push_back(i == 0 || piece.cut == Cut::required);
      passing_[0].push_back(0);
    }
    passing_[0].back() = std::max(passing_[0].back(), piece.passing);
    merged_piece[i] = static_cast<int>(place_in_chain_.size()) - 1;
    sum.work += piece.work;
    sum.weights += piece.weights;
    sum.fixed += piece.fixed;
    sum.stash += piece.stash;
    sum.reduced += piece.reduced;
  }
  close();
  place_in_chain_.push_back(count);
  boundary_.push_back(0);
  required.push_back(true);

  next_required_.resize(required.size(), size());
  for (int i = size() - 1; i >= 0; --i)
    next_required_[i] = required[i + 1] ? i + 1 : next_required_[i + 1];
  previous_required_.resize(required.size(), 0);
  for (int j = 1; j <= size(); ++j)
    previous_required_[j] = required[j - 1] ? j - 1 : previous_required_[j - 1];

  for (std::size_t width = 1; 2 * width <= passing_[0].size(); width *= 2) {
    const std::vector<Bytes> narrow = passing_.back();
    auto& wide = passing_.emplace_back(narrow.size() - width);
    for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = std::max(narrow[i], narrow[i + width]);
  }

  for (const Tie& tie : chain.ties) {
    const int first = merged_piece[tie.first];
    const int second = merged_piece[tie.second];
    if (first != second) ties_.push_back({first, second, tie.bytes});
  }
}

Bytes ChainSums::passing(int i, int j) const {
  assert(i < j);
  const int level = std::bit_width(static_cast<unsigned>(j - i)) - 1;
  return std::max(passing_[level][i], passing_[level][j - (1 << level)]);
}

Bytes ChainSums::second_copies(int i, int j) const {
  Bytes bytes = 0;
  for (const Tie& tie : ties_)
    if (tie.second >= i && tie.second < j && tie.first < i) bytes += tie.bytes;
  return bytes;
}

std::vector<int> ChainSums::in_chain(const std::vector<int>& places) const {
  std::vector<int> cuts;
  for (int place : places) cuts.push_back(place_in_chain_[place]);
  return cuts;
}

std::vector<int> ChainSums::merged(const std::vector<int>& cuts) const {
  std::vector<int> places;
  for (int cut : cuts) {
    const auto place = std::lower_bound(place_in_chain_.begin(), place_in_chain_.end(), cut);
    assert(place != place_in_chain_.end() && *place == cut && "a cut where none is allowed");
    places.push_back(static_cast<int>(place - place_in_chain_.begin()));
  }
  return places;
}

}  // namespace troupe::schedules
