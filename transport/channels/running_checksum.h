#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/digest.h"

namespace troupe::transport {

/// The checksum of a payload's tensors, made piece by piece while they are in the processor's cache
/// anyway: just before they are sent, just after they have come. Where pieces begin and end does
/// not depend on how they travel.
class RunningChecksum {
 public:
  /// Goes on with `tensor` until all pieces that begin before `end` are in it.
  void reach(std::span<const std::byte> tensor, std::size_t end) {
    while (done_ < std::min(end, tensor.size())) add(tensor);
  }
  /// Goes on with `tensor` through all pieces that are whole before `end`.
  void follow(std::span<const std::byte> tensor, std::size_t end) {
    while (done_ < tensor.size() && std::min(done_ + piece, tensor.size()) <= end) add(tensor);
  }
  void next_tensor() { done_ = 0; }

  std::uint64_t sum() const { return sum_; }

 private:
  static constexpr std::size_t piece = std::size_t{128} << 10;

  void add(std::span<const std::byte> tensor) {
    const auto part = tensor.subspan(done_, std::min(piece, tensor.size() - done_));
    sum_ = checksum_of(part, sum_);
    done_ += part.size();
  }

  std::size_t done_ = 0;  // Of the present tensor.
  std::uint64_t sum_ = 0;
};

}  // namespace troupe::transport
