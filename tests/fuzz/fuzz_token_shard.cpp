#include <cstdlib>
#include <cstring>

#include "storage/data/dataset.h"
#include "storage/files/memory_files.h"

using namespace troupe;
using namespace troupe::storage;

/// Reads any bytes as a token shard: gives an error, or samples whose tokens are in the vocabulary.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  MemoryFiles files;
  if (!write_new_file(files, "shard.bin", {std::as_bytes(std::span(data, size))})) std::abort();
  const auto dataset = open_dataset("shard.bin", {.context = 2, .classes = 0}, files);
  if (!dataset) {
    if (dataset.error().text.empty()) std::abort();
    return 0;
  }
  std::array<std::int32_t, 2> input, target;
  for (std::int64_t i = 0; i < (*dataset)->count(); ++i) {
    if (!(*dataset)->read({.sample = i}, {{std::as_writable_bytes(std::span(input))},
                                          std::as_writable_bytes(std::span(target))}))
      std::abort();
    if (input[1] != target[0]) std::abort();
    for (const auto token : {input[0], input[1], target[1]})
      if (token < 0 || token >= (*dataset)->classes()) std::abort();
  }
  return 0;
}
