#pragma once

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/cuda/machine/arena.h"
#include "tests/kernels/numbers.h"

namespace troupe::kernels {

/// Opens a GPU. Returns null and prints the reason if there is none; then the test is skipped.
inline std::unique_ptr<Device> open_device() {
  auto device = cuda::open_device(0);
  if (device) return std::move(*device);
  WARN("skipped: " << device.error().text);
  return nullptr;
}

/// Returns memory with an allocation of CUDA for each block. compute-sanitizer sees an access
/// beyond its end. In a device's usual memory, whose pieces are mapped as a whole, it does not.
std::unique_ptr<MemorySource> separate_blocks();

/// Returns the memory of the device that open_device() gives. With TROUPE_TEST_BLOCKS=separate each
/// block is an allocation of its own.
inline std::unique_ptr<MemorySource> device_memory() {
  const char* blocks = std::getenv("TROUPE_TEST_BLOCKS");
  if (blocks && blocks == std::string("separate")) return separate_blocks();
  auto memory = cuda::device_memory(0);
  REQUIRE(memory.ok());
  return std::move(*memory);
}

/// Opens a GPU if its tensor cores can be used.
inline std::unique_ptr<Device> open_tensor_cores() {
  const auto libraries = cuda::tensor_core_libraries();
  if (libraries) return open_device();
  WARN("skipped: " << libraries.error().text);
  return nullptr;
}

/// Appends the numbers of a result.
inline void append(std::vector<float>& all, Stream& stream, const Tensor& made) {
  const Tensor here = stream.to_host(made);
  stream.wait();
  all.insert(all.end(), here.numbers<float>().begin(), here.numbers<float>().end());
}

/// Returns whether two numbers have the same bits. Any NaN equals any other: processors differ in
/// the sign of a NaN that they make.
inline bool has_bits_of(float found, float wanted) {
  return std::memcmp(&found, &wanted, sizeof(float)) == 0 ||
         (std::isnan(found) && std::isnan(wanted));
}

/// Returns whether `body`, which returns the results of kernels on a stream, gives the same bits on
/// the cores and on a device.
template <class Body>
bool same_on_device(Body body) {
  const auto on = [&](Stream& stream) {
    std::vector<Tensor> made = body(stream);
    std::vector<float> all;
    for (const auto& tensor : made) append(all, stream, tensor);
    return all;
  };
  const auto device = open_device();
  if (!device) return true;
  MemoryPool host;
  Stream cores(host);
  const auto wanted = on(cores);

  MemoryPool memory(device_memory());
  Stream stream(memory, *device);
  const auto found = on(stream);
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!has_bits_of(found[i], wanted[i])) {
      UNSCOPED_INFO("at " << i << " of " << found.size() << ": " << found[i] << ", wanted "
                          << wanted[i]);
      return false;
    }
  return true;
}

}  // namespace troupe::kernels
