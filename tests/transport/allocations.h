#pragma once

#include <cstddef>
#include <cstdint>

/// The bytes that this thread has allocated since the object was made, including those that were
/// freed again.
class Allocations {
 public:
  Allocations();
  std::size_t bytes() const;

  /// Returns how many allocations all threads have made so far.
  static std::uint64_t of_process();

 private:
  std::size_t before_;
};
