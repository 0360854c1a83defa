#include <cstdlib>

#include "storage/data/idx.h"

using namespace troupe;
using namespace troupe::storage;

/// Reads any bytes as an IDX file: gives an error, or as many values as the shape requires.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto array = IdxArray::parse(Bytes::copy_of(std::as_bytes(std::span(data, size))));
  if (!array) {
    if (array.error().text.empty()) std::abort();
    return 0;
  }
  unsigned sum = 0;
  for (const auto value : array->values()) sum += value;
  if (array->shape().count() != static_cast<std::int64_t>(array->values().size()) ||
      sum > 255 * array->values().size())
    std::abort();
  return 0;
}
