#pragma once

#include "core/memory/stream.h"
#include "kernels/linear.h"

namespace troupe::kernels {

/// Measures the highest rate, in floating-point operations per second, that a stream's threads
/// reach together with fused multiply-adds in registers. Benchmarks report a product's rate as a
/// share of it, and a node's profile contains it. Takes some tens of milliseconds.
double fma_peak(Stream& stream, Precision precision);

}  // namespace troupe::kernels
