#pragma once

#include <cstdint>

#include "core/memory/stream.h"
#include "core/random.h"

namespace troupe::kernels {

/// y = x / (1 - rate) where the element's random number is at least `rate`, else 0. `x` holds
/// `samples` samples of `per_sample` elements; the first is `key.sample`, the next key.sample + 1,
/// ... Backward is the same function of dy with the same key: nothing is kept. y may be x.
void dropout(Stream& stream, const RandomKey& key, float rate, const float* x, float* y,
             std::int64_t samples, std::int64_t per_sample);

}  // namespace troupe::kernels
