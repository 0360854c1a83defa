#pragma once

#include <cstdint>

#include "core/random.h"
#include "kernels/attention.h"

namespace troupe::kernels {

/// Returns the bucket of a distance between two positions (arXiv 1910.10683). Half of the buckets
/// have one distance each; the others grow with it by equal factors up to shape.distance. With a
/// full mask, keys behind the query have the second half of all buckets. Multiplications alone
/// decide, so the bits are the same on all machines.
constexpr std::int32_t bucket_of(const AttentionShape& shape, std::int64_t key_minus_query) {
  std::int64_t buckets = shape.buckets, first = 0, apart = -key_minus_query;
  if (shape.mask == Mask::full) {
    buckets /= 2;
    if (apart < 0) first = buckets;
    if (apart < 0) apart = -apart;
  }
  if (apart < 0) apart = 0;
  const std::int64_t exact = buckets / 2, others = buckets - exact;
  if (apart < exact) return static_cast<std::int32_t>(first + apart);
  if (apart >= shape.distance) return static_cast<std::int32_t>(first + buckets - 1);
  // Bucket `exact` + j begins where (apart / exact)^others is (distance / exact)^j.
  double power = 1, bound = 1;
  for (std::int64_t i = 0; i < others; ++i) {
    power *= static_cast<double>(apart);
    bound *= static_cast<double>(exact);
  }
  std::int64_t j = 0;
  for (; j + 1 < others; ++j) {
    bound = bound / static_cast<double>(exact) * static_cast<double>(shape.distance);
    if (power < bound) break;
  }
  return static_cast<std::int32_t>(first + exact + j);
}

/// The most buckets and the greatest distance: powers of both stay far below the greatest double.
constexpr std::int64_t most_buckets = 64;
constexpr std::int64_t most_distance = 1 << 20;

/// Returns the key of a query's dropout: element i of it belongs to key position i. Lengths change
/// no number.
constexpr RandomKey dropout_key(const RandomKey& key, std::int64_t batch, std::int64_t head,
                                std::int64_t query) {
  RandomKey of_sample = key;
  of_sample.sample += static_cast<std::uint32_t>(batch);
  const auto own = of_sample.words(static_cast<std::uint32_t>(head));
  return {.seed = own[0] | std::uint64_t{own[1]} << 32,
          .step = own[2],
          .sample = own[3],
          .operation = static_cast<std::uint32_t>(query)};
}

}  // namespace troupe::kernels
