#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace troupe::storage {

/// The merge of a pair of tokens. A lower rank comes first.
struct Merged {
  std::int32_t rank, id;
};

/// A hash table from pairs of tokens to merges. Most pairs of a text have none: a look-up mostly
/// reads one line of the cache.
class MergeTable {
 public:
  explicit MergeTable(std::size_t merges = 0)
      : rows_(std::bit_ceil(2 * merges + 1)), mask_(rows_.size() - 1) {}

  /// Returns null if there is none.
  const Merged* find(std::int32_t left, std::int32_t right) const {
    const auto key = key_of(left, right);
    for (auto at = place_of(key);; at = (at + 1) & mask_) {
      if (rows_[at].key == key) return &rows_[at].merged;
      if (rows_[at].key == empty) return nullptr;
    }
  }
  /// Returns false if the pair has a merge already. Takes as many merges as were announced.
  bool add(std::int32_t left, std::int32_t right, Merged merged) {
    const auto key = key_of(left, right);
    auto at = place_of(key);
    for (; rows_[at].key != empty; at = (at + 1) & mask_)
      if (rows_[at].key == key) return false;
    rows_[at] = {key, merged};
    return true;
  }

 private:
  static constexpr std::uint64_t empty = ~std::uint64_t{0};
  struct Row {
    std::uint64_t key = empty;
    Merged merged{};
  };
  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return (static_cast<std::uint64_t>(left) << 32) | static_cast<std::uint32_t>(right);
  }
  std::size_t place_of(std::uint64_t key) const {
    key *= 0x9e3779b97f4a7c15u;  // 2^64 divided by the golden ratio.
    return static_cast<std::size_t>(key ^ (key >> 32)) & mask_;
  }

  std::vector<Row> rows_;
  std::size_t mask_;
};

}  // namespace troupe::storage
