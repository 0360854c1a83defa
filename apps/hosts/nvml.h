#pragma once

#include <memory>
#include <vector>

#include "actors/nodes/node_messages.h"
#include "core/result.h"

namespace troupe::apps {

/// This machine's NVIDIA GPUs, read through the driver's library NVML. The library is loaded at run
/// time, so neither building nor running needs it. CUDA_VISIBLE_DEVICES has no influence.
class Nvml {
 public:
  /// Loads the library. A missing library is no error: read() then returns no GPUs. A library that
  /// lacks a needed function or fails to initialize is an error.
  static Result<Nvml> open();
  Nvml(Nvml&& other) noexcept;
  Nvml& operator=(Nvml&& other) noexcept;
  ~Nvml();

  /// Reads all GPUs. May block as long as the driver does, even forever. A GPU that does not answer
  /// gets a fault; values that a GPU does not support are absent. One thread at a time may call it.
  Result<std::vector<actors::GpuReading>> read() const;

 private:
  struct Library;
  explicit Nvml(std::unique_ptr<Library> library);

  std::unique_ptr<Library> library_;  // Null if there is no library.
};

}  // namespace troupe::apps
