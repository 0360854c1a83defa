#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <span>
#include <string>

#include "core/result.h"

namespace troupe::kernels::cuda {

/// Functions of the driver, found when the program runs: one that is linked to it does not start
/// where there is none.
struct Driver {
  decltype(&cuDeviceGet) device = nullptr;
  decltype(&cuDeviceGetAttribute) attribute = nullptr;
  decltype(&cuDeviceGetUuid) uuid = nullptr;
  decltype(&cuDevicePrimaryCtxGetState) state = nullptr;
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) unreserve = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;
  decltype(&cuMemGetAccess) get_access = nullptr;
  decltype(&cuMemExportToShareableHandle) export_handle = nullptr;
  decltype(&cuMemImportFromShareableHandle) import_handle = nullptr;

  /// An error where it lacks one.
  static Result<Driver> find();

  bool can(int number, CUdevice_attribute what) const;
  /// Whether this process has a context there, or may have one.
  bool is_used(int number) const;
  /// Makes a piece of memory readable and writable at these addresses for the GPUs of these
  /// numbers. False where that cannot be; then nothing is there.
  bool map_for(std::span<const int> numbers, CUdeviceptr at, std::size_t bytes,
               CUmemGenericAllocationHandle piece) const;
  /// Whether it was made so for that one.
  bool is_mapped_for(int number, const void* at) const;
};

/// What the driver says.
Error driver_error(const std::string& what, CUresult said);

}  // namespace troupe::kernels::cuda
