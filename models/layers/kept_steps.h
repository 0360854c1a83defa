#pragma once

#include <cstdint>

#include "models/layers/concat.h"

namespace troupe::models {

/// Marks the stream as a kept value. The gradient of the stream is the sum of its own and of that
/// which the value's readers gave.
class KeepStream final : public Layer {
 public:
  explicit KeepStream(int number) : number_(number) {}

  Reach reach() const override { return Reach::own_row; }
  Reach reach_from(RowSource& stream, KeptSources& kept) const override;
  Shape output_with(const Shape& input, KeptShapes& kept) const override;
  Work work(const Shape& /*input*/) const override { return {}; }
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;

 private:
  int number_;
};

/// A kept value that a layer reads.
struct KeptInput {
  int number = 0;
  bool has_gradient = true;
};

/// Returns a kept value in a forward pass.
const Tensor& kept_value(const Layer::In& in, int number);
/// Adds a reader's gradient of a kept value to those of later readers, in a backward pass. Does
/// nothing if nobody wants it.
void give_back(const Layer::In& in, const KeptInput& kept, Tensor gradient);

/// Continues with a kept value in place of the stream, which gets no gradient from here.
class TakeKept final : public Layer {
 public:
  explicit TakeKept(KeptInput kept) : kept_(kept) {}

  Reach reach() const override { return Reach::own_row; }
  Reach reach_from(RowSource& stream, KeptSources& kept) const override;
  Shape output_with(const Shape& input, KeptShapes& kept) const override;
  Work work(const Shape& /*input*/) const override { return {}; }
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;

 private:
  KeptInput kept_;
};

/// y = x + a kept value, in fp32.
class AddKept final : public Layer {
 public:
  explicit AddKept(KeptInput kept) : kept_(kept) {}

  Reach reach() const override { return Reach::own_row; }
  Reach reach_from(RowSource& stream, KeptSources& kept) const override;
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;

 private:
  KeptInput kept_;
};

/// Puts a kept value behind the stream: more channels of images, or more numbers of rows, in fp32.
class ConcatKept final : public Layer {
 public:
  /// `width` is that of the stream, and `kept_width` that of the kept value.
  ConcatKept(KeptInput kept, Concat::Along along, std::int64_t width, std::int64_t kept_width)
      : kept_(kept), along_(along), width_(width), kept_width_(kept_width) {}

  Reach reach() const override { return Reach::own_row; }
  Reach reach_from(RowSource& stream, KeptSources& kept) const override;
  Shape output(const Shape& input) const override;
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;

 private:
  KeptInput kept_;
  Concat::Along along_;
  std::int64_t width_, kept_width_;
};

}  // namespace troupe::models
