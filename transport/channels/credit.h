#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/result.h"
#include "transport/channels/channel.h"

namespace troupe::transport {

/// A bounded queue that reuses its slots: memory that an element has allocated stays with its slot.
template <class T>
class Line {
 public:
  explicit Line(std::size_t places) : places_(places), elements_(new T[places]) {}

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return elements_[(first_ + i) % places_]; }
  T& front() { return (*this)[0]; }

  /// Returns the next slot, with the content of its last use.
  T& push() {
    assert(size_ < places_);
    return (*this)[size_++];
  }
  void pop() {
    assert(size_ > 0);
    first_ = (first_ + 1) % places_;
    --size_;
  }

 private:
  std::size_t places_;
  std::unique_ptr<T[]> elements_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

/// Tracks what is in flight against the bound. The caller holds a lock.
class Credit {
 public:
  explicit Credit(Bound bound) : bound_(bound), under_way_(bound.parcels) {}

  bool covers(std::size_t bytes) const {
    return parcels_ < bound_.parcels && bytes <= bound_.bytes && bytes_ <= bound_.bytes - bytes;
  }
  /// Reserves a parcel of `bytes`, or returns an error if covers() is false.
  Status take(std::size_t bytes) {
    if (!covers(bytes))
      return Error{"more would be under way than the channel's bound: " + std::to_string(parcels_) +
                   " parcels of at most " + std::to_string(bound_.parcels) + " and " +
                   std::to_string(bytes_) + " of at most " + std::to_string(bound_.bytes) +
                   " bytes are, and now one of " + std::to_string(bytes)};
    ++parcels_;
    bytes_ += bytes;
    return Done{};
  }
  /// Appends a reserved parcel to the order of sending.
  void sent(std::size_t bytes) {
    under_way_.push() = bytes;
    ++sent_;
  }
  /// Frees the credit of all parcels up to number `parcels`. Returns false if that number is
  /// impossible.
  bool arrived(std::uint64_t parcels) {
    if (parcels < arrived_ || parcels > sent_) return false;
    for (; arrived_ < parcels; ++arrived_) {
      bytes_ -= under_way_.front();
      under_way_.pop();
      --parcels_;
    }
    return true;
  }

  std::size_t parcels() const { return parcels_; }
  std::uint64_t sent_so_far() const { return sent_; }

 private:
  Bound bound_;
  Line<std::size_t> under_way_;
  std::size_t parcels_ = 0;
  std::size_t bytes_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t arrived_ = 0;
};

/// Asserts limits that hold for every bound: exceeding them is a bug of the caller.
inline void assert_sane(std::span<const std::byte> head, std::span<const Tensor> tensors) {
  assert(head.size() <= most_head_bytes && "a parcel's head is small");
  assert(tensors.size() <= most_tensors && "a parcel has few tensors");
  for (const auto& tensor : tensors) assert(!tensor.empty() && "a tensor without memory");
}

}  // namespace troupe::transport
