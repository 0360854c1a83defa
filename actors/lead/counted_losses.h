#pragma once

#include <cstdint>
#include <vector>

#include "actors/messages.h"
#include "models/train/stage.h"

namespace troupe::actors {

/// The losses of a step's or an evaluation's micro-batches, as they arrive.
class CountedLosses {
 public:
  explicit CountedLosses(int micro_batches = 0)
      : losses_(static_cast<std::size_t>(micro_batches)),
        is_known_(static_cast<std::size_t>(micro_batches)),
        left_(micro_batches) {}

  bool is_known(int index) const { return is_known_.at(static_cast<std::size_t>(index)); }
  /// Notes the loss of a micro-batch that is not known yet.
  void add(const MicroBatchLoss& loss) {
    losses_.at(static_cast<std::size_t>(loss.index)) = {loss.mean, loss.counted};
    is_known_[static_cast<std::size_t>(loss.index)] = true;
    counted_ += loss.counted;
    --left_;
  }

  int size() const { return static_cast<int>(losses_.size()); }
  int left() const { return left_; }  // Micro-batches whose losses are not known.
  /// Returns how many targets count in the micro-batches that are known.
  std::int64_t counted() const { return counted_; }
  /// Returns the mean over the targets that count. No loss may be missing.
  double mean() const { return models::mean_of(losses_); }

 private:
  std::vector<models::MeanLoss> losses_;  // Indexed by micro-batch.
  std::vector<bool> is_known_;
  int left_ = 0;
  std::int64_t counted_ = 0;
};

}  // namespace troupe::actors
