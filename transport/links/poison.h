#pragma once

#include <atomic>
#include <cstdint>

namespace troupe::transport {

/// A word that the host writes and the device reads: the attempts before it are void.
///
/// After links are aborted, the work behind an aborted receive starts and finds garbage. So the
/// word is written before anything is aborted. Device work that changes state which outlives a step
/// reads the word first, and does nothing if its attempt is void.
class Poison {
 public:
  /// `word` must be 0 and in memory that the device can read.
  explicit Poison(std::uint64_t& word) : word_(&word) {}

  /// Voids this attempt and all earlier ones for good.
  void spoil(std::uint64_t epoch) {
    const std::atomic_ref<std::uint64_t> word(*word_);
    auto before = word.load();
    while (before <= epoch && !word.compare_exchange_weak(before, epoch + 1)) continue;
  }
  bool spoils(std::uint64_t epoch) const {
    return epoch < std::atomic_ref<std::uint64_t>(*word_).load();
  }

  /// For kernels, which test `epoch < *word`.
  const std::uint64_t* word() const { return word_; }

 private:
  std::uint64_t* word_;
};

}  // namespace troupe::transport
