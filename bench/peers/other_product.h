#pragma once

#include "bench/kernel_bench.h"

namespace troupe::bench {

/// Returns oneDNN's product on `threads` threads, or an empty one if oneDNN is not installed.
OtherProduct other_product(int threads);

}  // namespace troupe::bench
