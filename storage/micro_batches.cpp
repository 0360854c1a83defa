#include "storage/micro_batches.h"

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
  return {static_cast<std::byte*>(batch.raw()) + static_cast<std::size_t>(sample) * bytes, bytes};
}

}  // namespace

Result<Batch> MicroBatches::read(MemoryPool& memory, std::int64_t step, int m) const {
  const SampleShape& shape = dataset_->shape();
  Batch batch{Tensor::make(memory, batch_of(micro_, shape.input), shape.input_type),
              Tensor::make(memory, batch_of(micro_, shape.target), shape.target_type)};
  for (std::int64_t i = 0; i < micro_; ++i) {
    const Place place = order_.at(step * global_ + m * micro_ + i);
    const Status read = dataset_->read(place.sample, part_of(batch.input, i, shape.input_bytes()),
                                       part_of(batch.target, i, shape.target_bytes()));
    if (!read) return read.error();
  }
  return batch;
}

Digest MicroBatches::samples(std::int64_t step, int m) const {
  std::vector<std::int64_t> numbers;
  numbers.reserve(static_cast<std::size_t>(2 * micro_));
  for (std::int64_t i = 0; i < micro_; ++i) {
    const Place place = order_.at(step * global_ + m * micro_ + i);
    numbers.insert(numbers.end(), {place.pass, place.sample});
  }
  return digest_of(std::as_bytes(std::span(numbers)));
}

}  // namespace troupe::storage
