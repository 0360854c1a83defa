#pragma once

#include "kernels/pool.h"
#include "models/layer.h"

namespace troupe::models {

/// Square windows that a pool takes from images [batch, channels, height, width].
struct Windows {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
};

/// The greatest number of each window, by channel. Computes in fp32.
class MaxPool final : public Layer {
 public:
  explicit MaxPool(const Windows& windows) : windows_(windows) {}

  int saved() const override { return 2; }
  Shape output(const Shape& input) const override;
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;

 private:
  enum Saved { input, places };

  Windows windows_;
};

/// The mean of each window, by channel; padding counts as zeros. Computes in fp32.
class WindowMean final : public Layer {
 public:
  explicit WindowMean(const Windows& windows) : windows_(windows) {}

  int saved() const override { return 1; }
  Shape output(const Shape& input) const override;
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;

 private:
  Windows windows_;
};

}  // namespace troupe::models
