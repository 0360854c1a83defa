// The part of CUDA's driver that kernels/cuda uses.
#pragma once

#include "tests/cuda_on_cores/driver.h"

using cuda_on_cores::CUDA_SUCCESS;
using cuda_on_cores::CUdevice;
using cuda_on_cores::CUdevice_attribute;
using cuda_on_cores::CUdeviceptr;
using cuda_on_cores::CUmemAccessDesc;
using cuda_on_cores::CUmemAllocationProp;
using cuda_on_cores::CUmemGenericAllocationHandle;
using cuda_on_cores::CUmemLocation;
using cuda_on_cores::CUresult;
using cuda_on_cores::CUuuid;

using cuda_on_cores::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED;
using cuda_on_cores::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED;
using cuda_on_cores::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
using cuda_on_cores::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
using cuda_on_cores::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
using cuda_on_cores::CU_MEM_ALLOCATION_TYPE_PINNED;
using cuda_on_cores::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
using cuda_on_cores::CU_MEM_LOCATION_TYPE_DEVICE;

using cuda_on_cores::cuDeviceGet;
using cuda_on_cores::cuDeviceGetAttribute;
using cuda_on_cores::cuDeviceGetUuid;
using cuda_on_cores::cuDevicePrimaryCtxGetState;
using cuda_on_cores::cuMemAddressFree;
using cuda_on_cores::cuMemAddressReserve;
using cuda_on_cores::cuMemCreate;
using cuda_on_cores::cuMemExportToShareableHandle;
using cuda_on_cores::cuMemGetAccess;
using cuda_on_cores::cuMemGetAllocationGranularity;
using cuda_on_cores::cuMemImportFromShareableHandle;
using cuda_on_cores::cuMemMap;
using cuda_on_cores::cuMemRelease;
using cuda_on_cores::cuMemSetAccess;
using cuda_on_cores::cuMemUnmap;
