#pragma once

#include <cstddef>
#include <cstdint>
#include <set>

/// The memory of a device that there is not. Its addresses are real ones, but its pages can be read
/// and written only while work of a queue runs: whoever does so at another time gets a segmentation
/// fault there. What is new in it is no number. And while kernels run, they find the host's memory
/// shut, as far as the host itself does not need it.
namespace cuda_on_cores {

/// All that it has: 256 MiB, or as many bytes as CUDA_ON_CORES_MEMORY says.
std::size_t device_memory();
std::size_t device_memory_taken();
/// How often another one's was taken in.
std::uint64_t pieces_imported();

/// Which of the machine's GPUs it is: this process has CUDA_ON_CORES_GPUS of them (one), from
/// CUDA_ON_CORES_GPU on.
int number_on_machine(int device);
int gpus_of_process();
/// Whether they reach each other's memory: CUDA_ON_CORES_PEERS.
bool gpus_reach_each_other();
/// Whether memory, if it is a device's at all, is mapped for that one.
bool may_read(int device, const void* memory);
/// How often one was given a copy of what it cannot read.
std::uint64_t staged_copies();
void count_staged_copy();
/// Those of which this process has a context.
std::set<int> gpus_in_use();
void leave_current_device();

/// The first number of its compute capability: 9, or what CUDA_ON_CORES_CAPABILITY says.
int compute_capability();

/// What the next calls of this thread are about; the first one where nobody has said.
void set_current_device(int number);
int current_device();

/// While there is one, any thread may read and write it.
class OpenMemory {
 public:
  OpenMemory();
  ~OpenMemory();
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
};

/// Of the host, that a device copies from and to. Null where there is none left.
void* take_host_memory(std::size_t bytes);
void release_host_memory(void* memory);

/// While there is one, memory of that kind can be neither read nor written; unless there are other
/// threads, which may have to.
class ShutHostMemory {
 public:
  ShutHostMemory();
  ~ShutHostMemory();
  ShutHostMemory(const ShutHostMemory&) = delete;
  ShutHostMemory& operator=(const ShutHostMemory&) = delete;

 private:
  bool shut_;
};

/// Whether it is memory of the device, or of the host and the device can copy from there and to
/// there by itself.
bool is_reachable(const void* memory);

// With the names that CUDA's driver has.

enum CUresult { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_OUT_OF_MEMORY = 2 };
enum CUdevice_attribute {
  CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
  CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
  CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = 110,
};
enum CUmemAllocationType { CU_MEM_ALLOCATION_TYPE_PINNED = 1 };
enum CUmemAllocationHandleType { CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1 };
enum CUmemLocationType { CU_MEM_LOCATION_TYPE_DEVICE = 1 };
enum CUmemAccess_flags { CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3 };
enum CUmemAllocationGranularity_flags { CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1 };

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUmemGenericAllocationHandle = unsigned long long;
struct CUuuid {
  char bytes[16];
};

struct CUmemLocation {
  CUmemLocationType type;
  int id;
};
struct CUmemAllocationProp {
  CUmemAllocationType type;
  CUmemAllocationHandleType requestedHandleTypes;
  CUmemLocation location;
  struct {
    unsigned char gpuDirectRDMACapable;
  } allocFlags;
};
struct CUmemAccessDesc {
  CUmemLocation location;
  CUmemAccess_flags flags;
};

CUresult cuDeviceGet(CUdevice* device, int number);
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device);
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device);
/// Used is what a thread has made its current device, since the last reset.
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active);
CUresult cuMemGetAllocationGranularity(std::size_t* granule, const CUmemAllocationProp* kind,
                                       CUmemAllocationGranularity_flags flags);
CUresult cuMemAddressReserve(CUdeviceptr* at, std::size_t bytes, std::size_t alignment,
                             CUdeviceptr wanted, unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr at, std::size_t bytes);
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                     const CUmemAllocationProp* kind, unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemMap(CUdeviceptr at, std::size_t bytes, std::size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr at, std::size_t bytes);
CUresult cuMemSetAccess(CUdeviceptr at, std::size_t bytes, const CUmemAccessDesc* access,
                        std::size_t count);
CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr at);
/// The file is real, and so another process can open the memory by it.
CUresult cuMemExportToShareableHandle(void* file, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* file,
                                        CUmemAllocationHandleType type);

/// Null where the driver has none of that name.
void* find_driver_function(const char* name);

}  // namespace cuda_on_cores
