#pragma once

#include <memory>
#include <vector>

#include "actors/nodes/node_messages.h"
#include "core/result.h"

namespace troupe::apps {

/// This machine's NVIDIA GPUs, as the library of their driver (NVML) tells of them. It is looked
/// for when it is opened: neither building nor running needs it. Those of the machine, whatever
/// CUDA_VISIBLE_DEVICES says.
class Nvml {
 public:
  /// Where there is no such library none is seen, which is no error. One that lacks what is needed,
  /// or does not begin, is.
  static Result<Nvml> open();
  Nvml(Nvml&& other) noexcept;
  Nvml& operator=(Nvml&& other) noexcept;
  ~Nvml();

  /// May take as long as the driver likes; one that is sick may never answer. A GPU that does not
  /// answer has a fault; what one does not support is absent. One thread at a time.
  Result<std::vector<actors::GpuReading>> read() const;

 private:
  struct Library;
  explicit Nvml(std::unique_ptr<Library> library);

  std::unique_ptr<Library> library_;  // Null: there is none.
};

}  // namespace troupe::apps
