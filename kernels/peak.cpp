#include "kernels/peak.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <vector>

#include "kernels/cpu/parts/fma_chain.h"

namespace troupe::kernels {
namespace {

using Seconds = std::chrono::duration<double>;

cpu::FmaChain chain(Precision precision, std::int64_t steps) {
  switch (precision) {
    case Precision::fp32:
    case Precision::fp16_chain:  // Factors are widened to fp32 first.
      return cpu::fma_chain_f32(steps);
    case Precision::bf16_pairs:
      return cpu::fma_chain_bf16(steps);
    case Precision::bf16_blocks:
      return cpu::tile_chain(steps);
    case Precision::tf32:
    case Precision::fp16_gpu:
    case Precision::bf16_gpu:
      assert(false && "no precision of the cores");
  }
  return {};
}

/// Returns the operations per second of one round of all threads.
double rate(Stream& stream, Precision precision, std::int64_t steps) {
  std::vector<cpu::FmaChain> chains(static_cast<std::size_t>(stream.threads()));
  const auto begin = std::chrono::steady_clock::now();
  stream.for_each(stream.threads(), [&](std::int64_t i) {
    chains[static_cast<std::size_t>(i)] = chain(precision, steps);
  });
  const Seconds taken = std::chrono::steady_clock::now() - begin;
  double operations = 0;
  for (const auto& c : chains) operations += static_cast<double>(c.operations);
  return operations / taken.count();
}

}  // namespace

double fma_peak(Stream& stream, Precision precision) {
  // Long enough that the clock's resolution and waking threads do not matter.
  constexpr auto round = Seconds(0.004);
  constexpr int rounds = 8;
  std::int64_t steps = 1000;
  for (;; steps *= 2) {
    const auto begin = std::chrono::steady_clock::now();
    chain(precision, steps);
    if (std::chrono::steady_clock::now() - begin >= round) break;
  }
  double best = 0;
  for (int i = 0; i < rounds; ++i) best = std::max(best, rate(stream, precision, steps));
  return best;
}

}  // namespace troupe::kernels
