#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <span>
#include <string>

#include "core/result.h"

namespace troupe::kernels::cuda {

/// Functions of the driver, found at run time: a program that is linked to the driver does not
/// start without one.
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

  /// Returns an error if the driver lacks a function.
  static Result<Driver> find();

  bool can(int number, CUdevice_attribute what) const;
  /// Returns whether this process has a context on the GPU, or true if that is unknown.
  bool is_used(int number) const;
  /// Maps a piece of memory at these addresses, readable and writable for the GPUs `numbers`.
  /// Returns false, with nothing mapped, if that fails.
  bool map_for(std::span<const int> numbers, CUdeviceptr at, std::size_t bytes,
               CUmemGenericAllocationHandle piece) const;
  /// Returns whether a GPU can read and write `bytes` of a block at an address.
  bool is_mapped_for(int number, const void* at, std::size_t bytes) const;
};

/// Returns an error with the driver's code.
Error driver_error(const std::string& what, CUresult said);

}  // namespace troupe::kernels::cuda
