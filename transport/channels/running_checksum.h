#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/digest.h"

namespace troupe::transport {

/// The checksum of a payload's tensors, computed in pieces while they are in the processor's cache:
/// just before they are sent, or just after they have arrived. The pieces do not depend on how the
/// payload is split on the way.
class RunningChecksum {
 public:
  /// Adds all pieces of `tensor` that begin before `end`.
  void reach(std::span<const std::byte> tensor, std::size_t end) {
    while (done_ < std::min(end, tensor.size())) add(tensor);
  }
  /// Adds all pieces of `tensor` that end at or before `end`.
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

  std::size_t done_ = 0;  // In the current tensor.
  std::uint64_t sum_ = 0;
};

}  // namespace troupe::transport
