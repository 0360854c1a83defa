#pragma once

#include "bench/kernel_bench.h"

namespace troupe::bench {

/// oneDNN's, on so many threads; none where that is not installed.
OtherProduct other_product(int threads);

}  // namespace troupe::bench
