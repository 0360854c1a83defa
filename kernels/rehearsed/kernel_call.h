#pragma once

#include <cstdint>
#include <string_view>

#include "core/memory/shape.h"

namespace troupe::kernels {

/// The arithmetic of a product's factors on a GPU: ordinary fp32, or tensor cores with factors of
/// 19 bits (tf32) or of 16 bits (bf16 and fp16).
enum class Factors : std::uint8_t { fp32, tf32, bits16 };

/// A call of a device's kernel, and the least work that the call does.
struct KernelCall {
  std::string_view kernel;  // The kernel's name in DeviceKernels.
  Shape sizes;              // For products: rows, columns and depth.
  /// The bytes that go through memory if each input is read once and each result is written once. A
  /// number that is updated is read and written. A library's workspace is not counted.
  double bytes = 0;
  /// Multiplications and additions in products. Elementwise arithmetic is not counted, since memory
  /// limits such kernels.
  double operations = 0;
  Factors factors = Factors::fp32;

  friend bool operator==(const KernelCall&, const KernelCall&) = default;
};

}  // namespace troupe::kernels
