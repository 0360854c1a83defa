#pragma once

#include <atomic>
#include <cstdint>

namespace troupe::transport {

/// A word that the host writes and the device reads: which epochs are void.
///
/// When links are aborted, what stands behind an aborted receive begins and finds garbage. So the
/// word is written before anything is aborted, and all work of a device that changes what outlives
/// a step looks at it first, and does nothing where its epoch is void.
class Poison {
 public:
  /// `word` is 0 at first, and in memory that the device sees as well.
  explicit Poison(std::uint64_t& word) : word_(&word) {}

  /// This epoch and all before it are void, for ever.
  void spoil(std::uint64_t epoch) {
    const std::atomic_ref<std::uint64_t> word(*word_);
    auto before = word.load();
    while (before <= epoch && !word.compare_exchange_weak(before, epoch + 1)) continue;
  }
  bool spoils(std::uint64_t epoch) const {
    return epoch < std::atomic_ref<std::uint64_t>(*word_).load();
  }

  /// For kernels, which ask `epoch < *word`.
  const std::uint64_t* word() const { return word_; }

 private:
  std::uint64_t* word_;
};

}  // namespace troupe::transport
