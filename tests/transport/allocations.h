#pragma once

#include <cstddef>
#include <cstdint>

/// The bytes that this thread has asked the heap for since the object was made. What was given back
/// counts as well.
class Allocations {
 public:
  Allocations();
  std::size_t bytes() const;

  /// How often any thread of the process has asked so far.
  static std::uint64_t of_process();

 private:
  std::size_t before_;
};
