#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/digest.h"
#include "core/memory/memory_pool.h"
#include "core/memory/tensor.h"
#include "core/result.h"
#include "storage/data/dataset.h"
#include "storage/data/order.h"

namespace troupe::storage {

/// The samples of a micro-batch.
struct Batch {
  Tensor input;              // [samples, ...]
  Tensor target;             // [samples, ...]
  std::vector<Tensor> more;  // The inputs behind the first one, as in SampleShape::more.
  Digest samples;            // A digest of the places that were read.
  Digest content;  // A digest of the bytes of the first input, the targets, and the other inputs.
  std::int64_t counted = 0;  // The targets that count.
};

/// Returns a digest of the passes and numbers of samples.
Digest digest_of_samples(std::span<const Place> samples);

/// Returns the digest that reading `count` samples from position `first` on should give.
Digest digest_of_samples(const SampleOrder& order, std::int64_t first, std::int64_t count);

/// A dataset cut into steps and micro-batches. It keeps no state: any caller can read any
/// micro-batch of any step at once, and all callers get equal ones.
class MicroBatches {
 public:
  /// A step has `global` samples in micro-batches of `micro`, which must divide it. The dataset
  /// must outlive this. Targets count unless they are `ignore` or NaN.
  MicroBatches(const Dataset& dataset, SampleOrder order, std::int64_t global, std::int64_t micro,
               std::optional<std::int32_t> ignore = {})
      : dataset_(&dataset), order_(order), global_(global), micro_(micro), ignore_(ignore) {}

  int per_step() const { return static_cast<int>(global_ / micro_); }
  /// The shapes and types of a micro-batch as read() gives it.
  SampleShape shape() const;

  /// Returns the number of a step's samples of each source of a mixture; nothing for one source.
  std::vector<std::int64_t> of_sources(std::int64_t step) const {
    return order_.of_sources(step * global_, global_);
  }

  /// Reads a micro-batch. Nodes that read the same one must agree on both digests (see Ledger).
  Result<Batch> read(MemoryPool& memory, std::int64_t step, int m) const;

 private:
  const Dataset* dataset_;
  SampleOrder order_;
  std::int64_t global_;
  std::int64_t micro_;
  std::optional<std::int32_t> ignore_;
};

}  // namespace troupe::storage
