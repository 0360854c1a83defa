#pragma once

#include <cstddef>
#include <cstdint>
#include <set>

/// The memory of a simulated device. Its addresses are real, but its pages are accessible only
/// while queues work; any other access is a segmentation fault. New memory contains NaN. While
/// kernels run, host memory is protected as far as the host does not need it.
namespace cuda_on_cores {

/// Returns the size of the memory: 256 MiB, or CUDA_ON_CORES_MEMORY bytes.
std::size_t device_memory();
std::size_t device_memory_taken();
/// Returns how often memory of another process was imported.
std::uint64_t pieces_imported();

/// Returns the machine's number of a GPU. This process has CUDA_ON_CORES_GPUS of them (default 1),
/// beginning with CUDA_ON_CORES_GPU.
int number_on_machine(int device);
int gpus_of_process();
/// Returns whether GPUs reach each other's memory: CUDA_ON_CORES_PEERS.
bool gpus_reach_each_other();
/// While true, memory that is not mapped yet can be mapped for its own GPU only.
void refuse_peers(bool refuse);
/// Returns whether the device may read all of this memory. Memory of no device is always readable.
bool may_read(int device, const void* memory, std::size_t bytes);
/// Returns how often a device got a copy of memory that it cannot read.
std::uint64_t staged_copies();
void count_staged_copy();
/// Returns the GPUs on which this process has a context.
std::set<int> gpus_in_use();
/// Makes a context on the current GPU, as most of CUDA's functions do.
void use_current_device();
void leave_current_device();

/// Returns ten times the compute capability: of CUDA_ON_CORES_CAPABILITY, such as "8.6" or "9", or
/// 90.
int compute_capability();
/// Returns whether the GPU can run a program with the code that CUDA_ON_CORES_CODE names as CMake
/// does: "80-virtual 90-real" is PTX of 8.0 and machine code of 9.0. Without it each GPU can.
bool has_code();

/// Sets the device of this thread's next calls; the default is the first one.
void set_current_device(int number);
int current_device();

/// Makes device memory accessible to all threads while it exists.
class OpenMemory {
 public:
  OpenMemory();
  ~OpenMemory();
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
};

/// Takes host memory that the device can copy from and to. Returns null if none is left.
void* take_host_memory(std::size_t bytes);
void release_host_memory(void* memory);

/// Protects such host memory from any access until it is reopened or the work on queues pauses.
/// Does nothing if there are other threads, which may need it.
void shut_host_memory();
/// Reopens it if `at` lies in such host memory, for a piece of work that copies.
void reopen_host_memory(const void* at);

/// Returns whether the device can access the memory by itself: device memory, or host memory from
/// take_host_memory().
bool is_reachable(const void* memory);

// Functions with the names of CUDA's driver.

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
/// A context is active if a thread made the device current after the last reset.
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
/// The file is real, so another process can open the memory through it.
CUresult cuMemExportToShareableHandle(void* file, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* file,
                                        CUmemAllocationHandleType type);

/// Returns null if the driver has no function of that name.
void* find_driver_function(const char* name);

}  // namespace cuda_on_cores
