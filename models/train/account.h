#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/memory/device.h"
#include "core/memory/memory_pool.h"
#include "core/memory/stream.h"
#include "core/result.h"
#include "kernels/rehearsed/kernel_call.h"

namespace troupe::models {

/// The hardware that computes. A GPU packs weights differently and needs memory for its kernels.
enum class Computer : std::uint8_t { cores, gpu };

/// Memory for a rehearsal: a pool that only counts its blocks, and a stream that never writes to
/// them. On a GPU, each call of a kernel is appended to `calls`, unless that is null.
struct Account {
  explicit Account(Computer computer, std::vector<kernels::KernelCall>* calls = nullptr);

  std::unique_ptr<Device> device;  // Null if the cores compute.
  MemoryPool pool;
  Stream stream;

  std::int64_t held() const { return static_cast<std::int64_t>(pool.counters().bytes_in_use); }
  std::int64_t peak() const { return static_cast<std::int64_t>(pool.counters().peak_in_use); }
};

/// The error if an account runs out of addresses.
Error too_few_addresses();

/// Returns the shape of `micro` samples.
Shape with_batch(std::int64_t micro, const Shape& sample);

}  // namespace troupe::models
