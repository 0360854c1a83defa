#pragma once

#include <cstdint>
#include <span>

#include "core/digest.h"
#include "core/memory/memory_pool.h"
#include "core/memory/tensor.h"
#include "core/result.h"
#include "storage/data/dataset.h"
#include "storage/data/order.h"

namespace troupe::storage {

/// What a micro-batch brings: the samples' inputs, and their targets.
struct Batch {
  Tensor input;    // [samples, ...]
  Tensor target;   // [samples, ...]
  Digest samples;  // Of the places that were read,
  Digest content;  // and of the bytes that were there: those of the inputs, then of the targets.
};

/// Tells samples apart by pass and number.
Digest digest_of_samples(std::span<const Place> samples);

/// What reading so many samples from a position on should give.
Digest digest_of_samples(const SampleOrder& order, std::int64_t first, std::int64_t count);

/// Cuts a dataset into steps and micro-batches. Nothing is remembered: any micro-batch of any step
/// is found at once, by whoever asks, and is the same for everyone.
class MicroBatches {
 public:
  /// A step has `global` samples in micro-batches of `micro`, which divides it. The dataset must
  /// outlive this.
  MicroBatches(const Dataset& dataset, SampleOrder order, std::int64_t global, std::int64_t micro)
      : dataset_(&dataset), order_(order), global_(global), micro_(micro) {}

  int per_step() const { return static_cast<int>(global_ / micro_); }

  /// Two who read separately must agree on both digests; a ledger says what both were.
  Result<Batch> read(MemoryPool& memory, std::int64_t step, int m) const;

 private:
  const Dataset* dataset_;
  SampleOrder order_;
  std::int64_t global_;
  std::int64_t micro_;
};

}  // namespace troupe::storage
