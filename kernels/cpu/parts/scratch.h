#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "core/memory/stream.h"

namespace troupe::kernels::cpu {

/// Temporary memory of a thread, handed out piece by piece. Each piece begins at a cache line, so
/// its size is rounded up by lines().
class Scratch {
 public:
  static constexpr std::int64_t lines(std::int64_t floats) { return (floats + 15) / 16 * 16; }

  /// `floats` is the sum of lines() of all pieces.
  Scratch(Stream& stream, std::int64_t floats)
      : block_(stream.memory().take(static_cast<std::size_t>(floats) * sizeof(float))),
        next_(reinterpret_cast<float*>(block_.get()->memory)),
        end_(next_ + floats) {}

  float* take(std::int64_t floats) {
    float* piece = next_;
    next_ += lines(floats);
    assert(next_ <= end_);
    return piece;
  }

 private:
  BlockHandle block_;
  float *next_, *end_;
};

}  // namespace troupe::kernels::cpu
