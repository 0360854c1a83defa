#include "kernels/cuda/cudnn/gpu.h"

#include <cstdint>
#include <exception>
#include <span>
#include <string>

namespace troupe::kernels::cudnn {

Gpu::Gpu() : properties_(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) {}

Result<Gpu> Gpu::described(std::string_view properties) try {
  Gpu gpu;
  gpu.properties_.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, std::span<const char>(properties));
  gpu.properties_.finalize();
  return gpu;
} catch (const std::exception& refusal) {
  return within("properties of a GPU", Error{refusal.what()});
}

Result<Gpu> Gpu::here(int number) try {
  Gpu gpu;
  gpu.properties_.set(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, std::int32_t{number});
  gpu.properties_.finalize();
  return gpu;
} catch (const std::exception& refusal) {
  return within("GPU " + std::to_string(number), Error{refusal.what()});
}

}  // namespace troupe::kernels::cudnn
