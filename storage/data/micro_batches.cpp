#include "storage/data/micro_batches.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace troupe::storage {
namespace {

Shape batch_of(std::int64_t samples, const Shape& sample) {
  Shape shape{samples};
  for (const auto size : sample) shape.append(size);
  return shape;
}

std::span<std::byte> part_of(Tensor& batch, std::int64_t sample, std::size_t bytes) {
  return batch.host_bytes().subspan(static_cast<std::size_t>(sample) * bytes, bytes);
}

}  // namespace

Digest digest_of_samples(std::span<const Place> samples) {
  static_assert(sizeof(Place) == 2 * sizeof(std::int64_t));
  return digest_of(std::as_bytes(samples));
}

Digest digest_of_samples(const SampleOrder& order, std::int64_t first, std::int64_t count) {
  std::vector<Place> samples;
  samples.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) samples.push_back(order.at(first + i));
  return digest_of_samples(samples);
}

SampleShape MicroBatches::shape() const {
  SampleShape shape = dataset_->shape();
  shape.input = batch_of(micro_, shape.input);
  shape.target = batch_of(micro_, shape.target);
  for (auto& field : shape.more) field.shape = batch_of(micro_, field.shape);
  return shape;
}

Result<Batch> MicroBatches::read(MemoryPool& memory, std::int64_t step, int m) const {
  const SampleShape& sample = dataset_->shape();
  const SampleShape whole = shape();
  Batch batch{Tensor::make(memory, whole.input, whole.input_type),
              Tensor::make(memory, whole.target, whole.target_type),
              {},
              {},
              {},
              0};
  for (const auto& field : whole.more)
    batch.more.push_back(Tensor::make(memory, field.shape, field.type));
  std::vector<Place> samples;
  samples.reserve(static_cast<std::size_t>(micro_));
  for (std::int64_t i = 0; i < micro_; ++i) {
    const Place place = order_.at(step * global_ + m * micro_ + i);
    SampleSpans to{{part_of(batch.input, i, sample.input_bytes())},
                   part_of(batch.target, i, sample.target_bytes())};
    for (std::size_t k = 0; k < batch.more.size(); ++k)
      to.inputs.push_back(part_of(batch.more[k], i, sample.more[k].bytes()));
    if (const Status read = dataset_->read(place, to); !read) return read.error();
    samples.push_back(place);
  }
  batch.samples = digest_of_samples(samples);
  Digester content;
  content.add(batch.input.host_bytes());
  content.add(batch.target.host_bytes());
  for (const auto& tensor : batch.more) content.add(tensor.host_bytes());
  batch.content = content.finish();
  batch.counted = batch.target.count();
  if (ignore_ && whole.target_type == DType::i32)
    batch.counted -= std::ranges::count(batch.target.numbers<std::int32_t>(), *ignore_);
  if (whole.target_type == DType::f32)
    batch.counted -= std::ranges::count_if(batch.target.numbers<float>(),
                                           [](float target) { return std::isnan(target); });
  return batch;
}

}  // namespace troupe::storage
