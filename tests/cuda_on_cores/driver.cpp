#include "tests/cuda_on_cores/driver.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/cuda_on_cores/queue.h"

namespace cuda_on_cores {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t granule = std::size_t{64} << 10;
// A byte that makes floats NaN and integers invalid tokens, which reveals reads of uninitialized
// memory.
constexpr int nothing = 0xff;

std::atomic<std::uint64_t> staged = 0;
std::atomic<bool> peers_refused = false;

void set_access(CUdeviceptr at, std::size_t bytes, int how) {
  if (mprotect(std::bit_cast<void*>(at), bytes, how) == 0) return;
  std::perror("pages of the played device");
  std::abort();
}

/// Changes the access to pieces of memory that come in the order of their addresses. Takes
/// neighbours together, since each call of the system is dear.
class Neighbours {
 public:
  explicit Neighbours(int how) : how_(how) {}
  ~Neighbours() { change(); }
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  void add(CUdeviceptr at, std::size_t bytes) {
    if (at != begin_ + bytes_) {
      change();
      begin_ = at;
      bytes_ = 0;
    }
    bytes_ += bytes;
  }

 private:
  void change() const {
    if (bytes_ > 0) set_access(begin_, bytes_, how_);
  }

  const int how_;
  CUdeviceptr begin_ = 0;
  std::size_t bytes_ = 0;
};

/// The memory of all devices. Each piece is an anonymous file that is mapped at the piece's
/// address.
struct Memory {
  struct Created {
    std::size_t bytes = 0;
    int file = -1;
    bool is_imported = false;
  };
  struct Mapped {
    std::size_t bytes = 0;
    std::set<int> readers = {};
  };

  std::mutex mutex;
  int open = 0;  // The number of threads that may access it now.
  bool host_is_shut = false;
  CUmemGenericAllocationHandle last = 0;
  std::uint64_t imported = 0;
  std::map<CUmemGenericAllocationHandle, Created> created;
  std::map<CUdeviceptr, Mapped> mapped;
  std::map<void*, std::size_t> of_host;
  std::set<int> used;  // Numbers of GPUs.

  const Mapped* piece_at(CUdeviceptr at) const {
    const auto next = mapped.upper_bound(at);
    if (next == mapped.begin()) return nullptr;
    const auto& [begin, piece] = *std::prev(next);
    return at < begin + piece.bytes ? &piece : nullptr;
  }
  bool is_of_host(const void* at) const {
    const auto next = of_host.upper_bound(const_cast<void*>(at));
    if (next == of_host.begin()) return false;
    const auto& [begin, bytes] = *std::prev(next);
    return static_cast<const std::byte*>(at) < static_cast<const std::byte*>(begin) + bytes;
  }
  void protect(int how) {
    Neighbours pieces(how);
    for (const auto& [at, piece] : mapped)
      if (!piece.readers.empty()) pieces.add(at, piece.bytes);
  }
  void protect_host(bool shut) {
    if (host_is_shut == shut) return;
    host_is_shut = shut;
    Neighbours pieces(shut ? PROT_NONE : PROT_READ | PROT_WRITE);
    for (const auto& [begin, bytes] : of_host) pieces.add(std::bit_cast<CUdeviceptr>(begin), bytes);
  }
};

/// Returns whether the process has no other thread.
bool is_alone() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return std::distance(begin(threads), end(threads)) == 1;
}

/// Returns the machine's number of this process' first GPU.
int first_gpu() {
  const char* number = std::getenv("CUDA_ON_CORES_GPU");
  return number ? std::atoi(number) : 0;
}

thread_local int current = 0;
thread_local bool alone = false;  // As of when this thread began to work off a queue.

/// Never destroyed, since some users end late.
Memory& memory() {
  static auto* memory = new Memory;
  return *memory;
}

CUresult add_created(CUmemGenericAllocationHandle* handle, const Memory::Created& piece) {
  auto& all = memory();
  const std::lock_guard lock(all.mutex);
  all.created.emplace(*handle = ++all.last, piece);
  all.imported += piece.is_imported ? 1 : 0;
  return CUDA_SUCCESS;
}

}  // namespace

std::size_t device_memory() {
  const char* bytes = std::getenv("CUDA_ON_CORES_MEMORY");
  return bytes ? std::strtoull(bytes, nullptr, 10) : std::size_t{256} << 20;
}

std::size_t device_memory_taken() {
  auto& all = memory();
  const std::lock_guard lock(all.mutex);
  std::size_t taken = 0;
  for (const auto& [handle, piece] : all.created) taken += piece.is_imported ? 0 : piece.bytes;
  return taken;
}

std::uint64_t pieces_imported() {
  auto& all = memory();
  const std::lock_guard lock(all.mutex);
  return all.imported;
}

int number_on_machine(int device) { return first_gpu() + device; }

int compute_capability() {
  const char* capability = std::getenv("CUDA_ON_CORES_CAPABILITY");
  return capability ? static_cast<int>(std::lround(10 * std::atof(capability))) : 90;
}

bool has_code() {
  const char* names = std::getenv("CUDA_ON_CORES_CODE");
  if (!names) return true;
  std::istringstream words(names);
  for (std::string word; words >> word;) {
    const int of = std::atoi(word.c_str()), here = compute_capability();
    // Machine code serves later GPUs of the same major number, PTX all later ones.
    if (of <= here && (word.ends_with("-virtual") || of / 10 == here / 10)) return true;
  }
  return false;
}

int gpus_of_process() {
  const char* count = std::getenv("CUDA_ON_CORES_GPUS");
  return count ? std::atoi(count) : 1;
}

std::uint64_t staged_copies() { return staged; }
void count_staged_copy() { ++staged; }

bool gpus_reach_each_other() { return std::getenv("CUDA_ON_CORES_PEERS") != nullptr; }

void refuse_peers(bool refuse) { peers_refused = refuse; }

bool may_read(int device, const void* address, std::size_t bytes) {
  const auto first = std::bit_cast<CUdeviceptr>(address);
  auto& all = memory();
  const std::lock_guard lock(all.mutex);
  for (const auto& [begin, piece] : all.mapped)
    if (begin < first + bytes && first < begin + piece.bytes && !piece.readers.contains(device))
      return false;
  return true;
}

std::set<int> gpus_in_use() {
  auto& all = memory();
  const std::lock_guard lock(all.mutex);
  return all.used;
}

void use_current_device() {
  auto& all = memory();
  const std::lock_guard lock(all.mutex);
  all.used.insert(current);
}
void set_current_device(int number) {
  current = number;
  use_current_device();
}
void leave_current_device() {
  auto& all = memory();
  const std::lock_guard lock(all.mutex);
  all.used.erase(current);
}
int current_device() { return current; }

OpenMemory::OpenMemory() {
  alone = is_alone();
  auto& all = memory();
  const std::lock_guard lock(all.mutex);
  if (all.open++ == 0) all.protect(PROT_READ | PROT_WRITE);
}

OpenMemory::~OpenMemory() {
  auto& all = memory();
  const std::lock_guard lock(all.mutex);
  if (--all.open > 0) return;
  all.protect(PROT_NONE);
  all.protect_host(false);
}

void* take_host_memory(std::size_t bytes) {
  const std::size_t size = (bytes + page - 1) / page * page;
  void* begin = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) return nullptr;
  auto& all = memory();
  const std::lock_guard lock(all.mutex);
  all.of_host.emplace(begin, size);
  return begin;
}

void release_host_memory(void* begin) {
  auto& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto found = all.of_host.find(begin);
  if (found == all.of_host.end()) return;
  munmap(begin, found->second);
  all.of_host.erase(found);
}

bool is_reachable(const void* memory_there) {
  const auto at = std::bit_cast<CUdeviceptr>(memory_there);
  auto& all = memory();
  const std::lock_guard lock(all.mutex);
  for (const auto& [begin, piece] : all.mapped)
    if (begin <= at && at < begin + piece.bytes) return true;
  return all.is_of_host(memory_there);
}

void shut_host_memory() {
  auto& all = memory();
  const std::lock_guard lock(all.mutex);
  if (alone) all.protect_host(true);
}

void reopen_host_memory(const void* at) {
  auto& all = memory();
  const std::lock_guard lock(all.mutex);
  if (all.host_is_shut && all.is_of_host(at)) all.protect_host(false);
}

CUresult cuDeviceGet(CUdevice* device, int number) {
  *device = number;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) {
  *value = 1;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  *uuid = {};
  uuid->bytes[0] = static_cast<char>(number_on_machine(device) + 1);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  *flags = 0;
  *active = gpus_in_use().contains(device) ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *bytes = granule;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* at, std::size_t bytes, std::size_t, CUdeviceptr,
                             unsigned long long) {
  void* begin = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *at = std::bit_cast<CUdeviceptr>(begin);
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr at, std::size_t bytes) {
  return munmap(std::bit_cast<void*>(at), bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                     const CUmemAllocationProp*, unsigned long long) {
  if (bytes == 0 || bytes % granule != 0 || spoils_recording()) return CUDA_ERROR_INVALID_VALUE;
  if (device_memory_taken() + bytes > device_memory()) return CUDA_ERROR_OUT_OF_MEMORY;
  const int file = memfd_create("played device", MFD_CLOEXEC);
  const std::vector<char> content(bytes, static_cast<char>(nothing));
  if (file < 0 || write(file, content.data(), bytes) != static_cast<ssize_t>(bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  return add_created(handle, {bytes, file, false});
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  auto& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto found = all.created.find(handle);
  if (found == all.created.end()) return CUDA_ERROR_INVALID_VALUE;
  close(found->second.file);
  all.created.erase(found);
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr at, std::size_t bytes, std::size_t,
                  CUmemGenericAllocationHandle handle, unsigned long long) {
  auto& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto found = all.created.find(handle);
  if (found == all.created.end() || found->second.bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  if (all.mapped.contains(at)) return CUDA_ERROR_INVALID_VALUE;
  auto* const address = std::bit_cast<void*>(at);
  if (mmap(address, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, found->second.file, 0) != address)
    return CUDA_ERROR_INVALID_VALUE;
  all.mapped.emplace(at, Memory::Mapped{bytes});
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr at, std::size_t bytes) {
  auto& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto found = all.mapped.find(at);
  if (found == all.mapped.end() || found->second.bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  // The addresses stay reserved.
  (void)mmap(std::bit_cast<void*>(at), bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  all.mapped.erase(found);
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr at, std::size_t bytes, const CUmemAccessDesc* access,
                        std::size_t count) {
  auto& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto found = all.mapped.find(at);
  if (found == all.mapped.end() || found->second.bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  if (peers_refused && count > 1) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) found->second.readers.insert(access[i].location.id);
  if (all.open > 0) set_access(at, bytes, PROT_READ | PROT_WRITE);
  return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr at) {
  auto& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto* piece = all.piece_at(at);
  if (!piece) return CUDA_ERROR_INVALID_VALUE;
  *flags = piece->readers.contains(location->id) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : 0;
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* file, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType, unsigned long long) {
  auto& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto found = all.created.find(handle);
  if (found == all.created.end()) return CUDA_ERROR_INVALID_VALUE;
  const int another = fcntl(found->second.file, F_DUPFD_CLOEXEC, 0);
  std::memcpy(file, &another, sizeof another);
  return another >= 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* file,
                                        CUmemAllocationHandleType) {
  const int another =
      fcntl(static_cast<int>(std::bit_cast<std::intptr_t>(file)), F_DUPFD_CLOEXEC, 0);
  struct stat known = {};
  if (another < 0 || fstat(another, &known) != 0) return CUDA_ERROR_INVALID_VALUE;
  return add_created(handle, {static_cast<std::size_t>(known.st_size), another, true});
}

void* find_driver_function(const char* name) {
  const std::pair<std::string_view, void*> functions[] = {
      {"cuDeviceGet", reinterpret_cast<void*>(cuDeviceGet)},
      {"cuDeviceGetAttribute", reinterpret_cast<void*>(cuDeviceGetAttribute)},
      {"cuDeviceGetUuid", reinterpret_cast<void*>(cuDeviceGetUuid)},
      {"cuDevicePrimaryCtxGetState", reinterpret_cast<void*>(cuDevicePrimaryCtxGetState)},
      {"cuMemExportToShareableHandle", reinterpret_cast<void*>(cuMemExportToShareableHandle)},
      {"cuMemImportFromShareableHandle", reinterpret_cast<void*>(cuMemImportFromShareableHandle)},
      {"cuMemGetAllocationGranularity", reinterpret_cast<void*>(cuMemGetAllocationGranularity)},
      {"cuMemAddressReserve", reinterpret_cast<void*>(cuMemAddressReserve)},
      {"cuMemAddressFree", reinterpret_cast<void*>(cuMemAddressFree)},
      {"cuMemCreate", reinterpret_cast<void*>(cuMemCreate)},
      {"cuMemRelease", reinterpret_cast<void*>(cuMemRelease)},
      {"cuMemMap", reinterpret_cast<void*>(cuMemMap)},
      {"cuMemUnmap", reinterpret_cast<void*>(cuMemUnmap)},
      {"cuMemSetAccess", reinterpret_cast<void*>(cuMemSetAccess)},
      {"cuMemGetAccess", reinterpret_cast<void*>(cuMemGetAccess)},
  };
  for (const auto& [known, function] : functions)
    if (known == name) return function;
  return nullptr;
}

}  // namespace cuda_on_cores
