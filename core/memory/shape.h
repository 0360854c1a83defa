#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace troupe {

/// The sizes of a tensor's dimensions, outermost first. Plain data without allocation.
class Shape {
 public:
  static constexpr int max_rank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes) {
    for (const auto size : sizes) append(size);
  }

  void append(std::int64_t size) {
    assert(rank_ < max_rank && size >= 0);
    sizes_[static_cast<std::size_t>(rank_++)] = size;
  }

  int rank() const { return rank_; }
  std::int64_t operator[](int dimension) const {
    assert(dimension >= 0 && dimension < rank_);
    return sizes_[static_cast<std::size_t>(dimension)];
  }
  std::int64_t last() const { return (*this)[rank_ - 1]; }

  /// Returns the number of elements; 1 for a scalar, which has no dimension.
  std::int64_t count() const {
    std::int64_t product = 1;
    for (int i = 0; i < rank_; ++i) product *= (*this)[i];
    return product;
  }
  /// Returns the product of all dimensions but the last: the rows of a matrix with last() columns.
  std::int64_t rows() const {
    std::int64_t product = 1;
    for (int i = 0; i + 1 < rank_; ++i) product *= (*this)[i];
    return product;
  }

  const std::int64_t* begin() const { return sizes_.data(); }
  const std::int64_t* end() const { return sizes_.data() + rank_; }

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a[i] != b[i]) return false;
    return true;
  }

 private:
  std::array<std::int64_t, max_rank> sizes_{};
  int rank_ = 0;
};

/// "[2, 3, 4]"
std::string to_string(const Shape& shape);

}  // namespace troupe
