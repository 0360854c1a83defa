#pragma once

#include <cstddef>

/// The bytes that this thread has asked the heap for since the object was made. What was given back
/// counts as well.
class Allocations {
 public:
  Allocations();
  std::size_t bytes() const;

 private:
  std::size_t before_;
};
