#include "tests/sim/data.h"

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "catch.h"
#include "storage/files/safetensors.h"

namespace troupe::simulation {
namespace {

constexpr std::int64_t samples = 48, dims = 4, classes = 3;

template <class T>
storage::TensorView view_of(const std::vector<T>& numbers, const char* name,
                            storage::StoredType type, Shape shape) {
  return {name, type, std::move(shape), std::as_bytes(std::span(numbers))};
}

}  // namespace

void write_data(storage::Files& disk, DataThere data) {
  if (data == DataThere::none) return;
  std::vector<float> input;
  std::vector<std::int32_t> target;
  for (std::int64_t i = 0; i < samples; ++i) {
    target.push_back(static_cast<std::int32_t>(i % classes));
    for (std::int64_t j = 0; j < dims; ++j)
      input.push_back(static_cast<float>((7 * i + 5 * j) % 11 - 5) / 8.0f +
                      static_cast<float>(i % classes));
  }
  if (data == DataThere::changed) input[5] += 1.0f;
  if (data == DataThere::spiky) input[5] = std::numeric_limits<float>::infinity();
  REQUIRE(disk.make_directory("/data"));
  REQUIRE(disk.sync_directory("/"));
  REQUIRE(storage::write_safetensors(
      disk, data_path,
      std::array{view_of(input, "input", storage::StoredType::f32, {samples, dims}),
                 view_of(target, "target", storage::StoredType::i32, {samples})}));
  // Power may be lost at any time.
  REQUIRE(disk.sync_directory("/data"));
}

}  // namespace troupe::simulation
