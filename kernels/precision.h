#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/memory/dtype.h"

namespace troupe::kernels {

/// In what the two operands of a product are, and in which order its terms are added. It
/// accumulates in fp32 whatever they are. Those that any processor can do have the order of
/// kernels/cpu/parts/product.h: for fp32 and fp16 one chain, so that a product in fp16 has the bits
/// of one in fp32 of the rounded operands, and on processors is no faster; for bf16 one of two. The
/// others are a GPU's own, whose libraries make convolutions and, in 16 bits, attention as well.
enum class Precision : std::uint8_t {
  fp32,
  fp16_chain,
  bf16_pairs,
  bf16_blocks,
  tf32,
  fp16_gpu,
  bf16_gpu,
};

/// Who can make its products, always with the same bits.
enum class Makers : std::uint8_t {
  all,           // Cores and devices.
  cores,         // Those of any processor; on a device's behalf, too.
  tensor_cores,  // A device's, in the order of its libraries.
};

/// All there is to say of a precision.
struct PrecisionFacts {
  Precision precision;
  std::string_view name;  // As a configuration names it.
  DType operands;         // What they are kept in.
  DType factors;          // What they are multiplied in, if need be widened anew for each product:
                          // that costs little beside it, and in between they take half the memory.
  Makers makers;
};

constexpr std::array<PrecisionFacts, 7> precisions{{
    {Precision::fp32, "fp32", DType::f32, DType::f32, Makers::all},
    {Precision::fp16_chain, "fp16-chain", DType::f16, DType::f32, Makers::all},
    {Precision::bf16_pairs, "bf16-pairs", DType::bf16, DType::bf16, Makers::cores},
    {Precision::bf16_blocks, "bf16-blocks", DType::bf16, DType::bf16, Makers::cores},
    {Precision::tf32, "tf32", DType::f32, DType::f32, Makers::tensor_cores},
    {Precision::fp16_gpu, "fp16-gpu", DType::f16, DType::f16, Makers::tensor_cores},
    {Precision::bf16_gpu, "bf16-gpu", DType::bf16, DType::bf16, Makers::tensor_cores},
}};
static_assert([] {
  for (std::size_t i = 0; i < precisions.size(); ++i)
    if (static_cast<std::size_t>(precisions[i].precision) != i) return false;
  return true;
}());

constexpr const PrecisionFacts& facts_of(Precision precision) {
  return precisions[static_cast<std::size_t>(precision)];
}

constexpr std::string_view to_string(Precision precision) { return facts_of(precision).name; }
/// Whether it wants a loss scale.
constexpr bool is_fp16(Precision precision) { return facts_of(precision).operands == DType::f16; }
constexpr bool is_bf16(Precision precision) { return facts_of(precision).operands == DType::bf16; }
constexpr bool is_on_tensor_cores(Precision precision) {
  return facts_of(precision).makers == Makers::tensor_cores;
}

/// The type of what goes into attention and convolutions, and comes out of them.
constexpr DType activation_type(Precision precision) {
  return is_on_tensor_cores(precision) ? facts_of(precision).operands : DType::f32;
}

/// The bf16 products that this processor is fastest at.
Precision fastest_bf16();

/// Whether it has instructions for them, so that they are faster than fp32.
bool has_bf16_products();

}  // namespace troupe::kernels
