#pragma once

#include <cuda_runtime_api.h>

#include <optional>
#include <string_view>

#include "core/result.h"
#include "kernels/cuda/cudnn/descriptor.h"

namespace troupe::kernels::cudnn {

/// A GPU that graphs are made for.
class Gpu {
 public:
  /// One that may well be elsewhere, by its properties in JSON, with cuDNN's names for them.
  static Result<Gpu> described(std::string_view properties);
  /// The one that this thread has.
  static Result<Gpu> here();
  ~Gpu();
  Gpu(Gpu&& other) noexcept;
  Gpu& operator=(Gpu&& other) = delete;

  /// Null where it is elsewhere.
  cudnnHandle_t handle() const { return handle_; }

  // Something that is made for it must be told so, before it is finalized.
  void tell_graph(Descriptor& graph) const;
  void tell_advice(Descriptor& advice) const;
  void tell_plan(Descriptor& plan) const;

 private:
  Gpu() = default;

  std::optional<Descriptor> properties_;  // None where it is here.
  cudnnHandle_t handle_ = nullptr;
};

}  // namespace troupe::kernels::cudnn
