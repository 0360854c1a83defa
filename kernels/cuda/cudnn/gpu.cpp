#include "kernels/cuda/cudnn/gpu.h"

#include <exception>
#include <span>
#include <string>
#include <utility>

#include "kernels/cuda/cudnn/library.h"

namespace troupe::kernels::cudnn {

Result<Gpu> Gpu::described(std::string_view properties) try {
  if (!library()) return library().error();
  Gpu gpu;
  auto& told = gpu.properties_.emplace(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  told.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, std::span<const char>(properties));
  told.finalize();
  return gpu;
} catch (const std::exception& refusal) {
  return within("properties of a GPU", Error{refusal.what()});
}

Result<Gpu> Gpu::here() try {
  if (!library()) return library().error();
  Gpu gpu;
  check(library()->create(&gpu.handle_));
  return gpu;
} catch (const std::exception& refusal) {
  return within("cuDNN", Error{refusal.what()});
}

Gpu::Gpu(Gpu&& other) noexcept
    : properties_(std::move(other.properties_)), handle_(std::exchange(other.handle_, nullptr)) {}

Gpu::~Gpu() {
  if (handle_) (void)library()->destroy(handle_);
}

void Gpu::tell_graph(Descriptor& graph) const {
  if (handle_) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle_);
}
void Gpu::tell_advice(Descriptor& advice) const {
  if (properties_) advice.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *properties_);
}
void Gpu::tell_plan(Descriptor& plan) const {
  if (handle_) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle_);
  if (properties_) plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *properties_);
}

}  // namespace troupe::kernels::cudnn
