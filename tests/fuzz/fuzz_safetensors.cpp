#include <cstdlib>

#include "storage/files/memory_files.h"
#include "storage/files/safetensors.h"

using namespace troupe;
using namespace troupe::storage;

/// Reads any bytes as a safetensors file: gives an error, or tensors that lie within the bytes, can
/// be copied, and survive writing and reading.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = Safetensors::parse(Bytes::copy_of(std::as_bytes(std::span(data, size))));
  if (!file) {
    if (file.error().text.empty()) std::abort();
    return 0;
  }
  MemoryPool pool;
  for (const auto& tensor : file->tensors())
    if (const auto loaded = load(tensor, pool); loaded && loaded->bytes() != tensor.bytes.size())
      std::abort();

  MemoryFiles files;
  if (!write_safetensors(files, "copy", file->tensors(), file->metadata())) std::abort();
  const auto copy = Safetensors::open(files, "copy");
  if (!copy || copy->tensors().size() != file->tensors().size()) std::abort();
  for (const auto& tensor : file->tensors()) {
    const auto* same = copy->find(tensor.name);
    if (!same || same->type != tensor.type || same->shape != tensor.shape ||
        !std::equal(same->bytes.begin(), same->bytes.end(), tensor.bytes.begin(),
                    tensor.bytes.end()))
      std::abort();
  }
  return 0;
}
