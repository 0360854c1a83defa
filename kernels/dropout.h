#pragma once

#include <cstdint>

#include "core/memory/stream.h"
#include "core/random.h"

namespace troupe::kernels {

/// y = x / (1 - rate) if the element's random number is at least `rate`, else 0. `x` holds
/// `samples` samples of `per_sample` elements; they draw with key.sample, key.sample + 1, ... The
/// backward pass applies the same function and key to dy, so no mask is stored. y may be x.
void dropout(Stream& stream, const RandomKey& key, float rate, const float* x, float* y,
             std::int64_t samples, std::int64_t per_sample);

namespace cpu {

/// Computes dropout of elements first, first + 1, ... of the sample that `key` names. `first` is a
/// multiple of 4. On the cores.
void drop_elements(const RandomKey& key, float rate, std::int64_t first, const float* x, float* y,
                   std::int64_t count);

}  // namespace cpu
}  // namespace troupe::kernels
