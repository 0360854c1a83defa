#pragma once

#include "core/memory/stream.h"
#include "kernels/linear.h"

namespace troupe::kernels {

/// The most floating-point operations a second that the threads of a stream do together, by
/// measurement: fused additions of products in registers alone. What a product reaches is told as a
/// share of this. Takes some tens of milliseconds.
double fma_peak(Stream& stream, Precision precision);

}  // namespace troupe::kernels
