#include "kernels/cuda/machine/driver.h"

#include <algorithm>
#include <bit>
#include <string>
#include <type_traits>
#include <vector>

namespace troupe::kernels::cuda {
namespace {

// The CUDA version whose functions are looked up; newer drivers have them too.
constexpr unsigned cuda_version = 12000;

}  // namespace

Result<Driver> Driver::find() {
  Driver driver;
  std::string missing;
  const auto look_for = [&](const char* name, auto& function) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult state = cudaDriverEntryPointSymbolNotFound;
    const auto outcome =
        cudaGetDriverEntryPointByVersion(name, &found, cuda_version, cudaEnableDefault, &state);
    if (outcome != cudaSuccess || state != cudaDriverEntryPointSuccess || !found)
      missing = name;
    else
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
  look_for("cuDeviceGet", driver.device);
  look_for("cuDeviceGetAttribute", driver.attribute);
  look_for("cuDeviceGetUuid", driver.uuid);
  look_for("cuDevicePrimaryCtxGetState", driver.state);
  look_for("cuMemGetAllocationGranularity", driver.granularity);
  look_for("cuMemAddressReserve", driver.reserve);
  look_for("cuMemAddressFree", driver.unreserve);
  look_for("cuMemCreate", driver.create);
  look_for("cuMemRelease", driver.release);
  look_for("cuMemMap", driver.map);
  look_for("cuMemUnmap", driver.unmap);
  look_for("cuMemSetAccess", driver.set_access);
  look_for("cuMemGetAccess", driver.get_access);
  look_for("cuMemExportToShareableHandle", driver.export_handle);
  look_for("cuMemImportFromShareableHandle", driver.import_handle);
  if (!missing.empty())
    return Error{"the driver has no " + missing + "; wanted one for CUDA 12 or later"};
  return driver;
}

bool Driver::can(int number, CUdevice_attribute what) const {
  CUdevice handle = 0;
  int yes = 0;
  return device(&handle, number) == CUDA_SUCCESS && attribute(&yes, what, handle) == CUDA_SUCCESS &&
         yes != 0;
}

bool Driver::is_used(int number) const {
  CUdevice handle = 0;
  unsigned flags = 0;
  int active = 1;
  if (device(&handle, number) == CUDA_SUCCESS) (void)state(handle, &flags, &active);
  return active != 0;
}

bool Driver::map_for(std::span<const int> numbers, CUdeviceptr at, std::size_t bytes,
                     CUmemGenericAllocationHandle piece) const {
  if (map(at, bytes, 0, piece, 0) != CUDA_SUCCESS) return false;
  std::vector<CUmemAccessDesc> all;
  for (const int number : numbers) {
    auto& access = all.emplace_back();
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = number;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  if (set_access(at, bytes, all.data(), all.size()) == CUDA_SUCCESS) return true;
  (void)unmap(at, bytes);
  return false;
}

bool Driver::is_mapped_for(int number, const void* at, std::size_t bytes) const {
  CUmemLocation location = {};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = number;
  const auto first = std::bit_cast<CUdeviceptr>(at);
  // A block may reach from a piece that is mapped for the GPU into one that is not. Later pieces
  // are mapped for no more GPUs than earlier ones, so both ends tell all.
  for (const auto byte : {first, first + std::max<std::size_t>(bytes, 1) - 1}) {
    unsigned long long flags = 0;
    if (get_access(&flags, &location, byte) != CUDA_SUCCESS ||
        flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
      return false;
  }
  return true;
}

Error driver_error(const std::string& what, CUresult said) {
  return {what + ": the driver says " + std::to_string(said)};
}

}  // namespace troupe::kernels::cuda
