#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/memory/dtype.h"

namespace troupe::kernels {

/// The type of a product's operands and the order of its sums, which are always in fp32. Any
/// processor can compute fp32, fp16_chain and the bf16 precisions in the order of
/// kernels/cpu/parts/product.h. fp16_chain has the bits of an fp32 product of the rounded operands;
/// a CPU computes it no faster. The other precisions need a GPU, whose libraries also compute
/// convolutions and 16-bit attention.
enum class Precision : std::uint8_t {
  fp32,
  fp16_chain,
  bf16_pairs,
  bf16_blocks,
  tf32,
  fp16_gpu,
  bf16_gpu,
};

/// The processors that can compute a precision's products, always with the same bits.
enum class Makers : std::uint8_t {
  all,           // Cores and devices.
  cores,         // Any CPU, on behalf of a device too.
  tensor_cores,  // A device, in the order of its libraries.
};

/// The properties of a precision.
struct PrecisionFacts {
  Precision precision;
  std::string_view name;  // Its name in a configuration.
  DType operands;         // The type in which operands are kept.
  DType factors;          // The type of the multiplication. Widening an operand anew for each
                          // product costs little, and until then it takes half the memory.
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
/// Returns whether training needs a loss scale.
constexpr bool is_fp16(Precision precision) { return facts_of(precision).operands == DType::f16; }
constexpr bool is_bf16(Precision precision) { return facts_of(precision).operands == DType::bf16; }
constexpr bool is_on_tensor_cores(Precision precision) {
  return facts_of(precision).makers == Makers::tensor_cores;
}

/// Returns the type of inputs and outputs of attention and convolutions.
constexpr DType activation_type(Precision precision) {
  return is_on_tensor_cores(precision) ? facts_of(precision).operands : DType::f32;
}

/// Returns the bf16 precision that this processor computes fastest.
Precision fastest_bf16();

/// Returns whether this processor has bf16 instructions, which make products faster than in fp32.
bool has_bf16_products();

/// Returns whether this processor computes the products of this precision about as fast as those of
/// fp32, or faster. Without instructions for bf16 it computes them several times slower.
bool has_instructions_for(Precision precision);

}  // namespace troupe::kernels
