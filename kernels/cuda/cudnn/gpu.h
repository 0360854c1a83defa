#pragma once

#include <cuda_runtime_api.h>

#include <optional>
#include <string_view>

#include "core/result.h"
#include "kernels/cuda/cudnn/descriptor.h"

namespace troupe::kernels::cudnn {

/// The GPU for which graphs are built.
class Gpu {
 public:
  /// Describes a GPU that may be elsewhere by its properties in JSON, with cuDNN's names.
  static Result<Gpu> described(std::string_view properties);
  /// Returns the current GPU of this thread.
  static Result<Gpu> here();
  ~Gpu();
  Gpu(Gpu&& other) noexcept;
  Gpu& operator=(Gpu&& other) = delete;

  /// Null if the GPU is elsewhere.
  cudnnHandle_t handle() const { return handle_; }

  // Each sets the GPU in a descriptor that is not finalized yet.
  void tell_graph(Descriptor& graph) const;
  void tell_advice(Descriptor& advice) const;
  void tell_plan(Descriptor& plan) const;

 private:
  Gpu() = default;

  std::optional<Descriptor> properties_;  // Empty if the GPU is here.
  cudnnHandle_t handle_ = nullptr;
};

}  // namespace troupe::kernels::cudnn
