#include "transport/channels/shm_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "transport/channels/frame.h"
#include "transport/channels/socket.h"

namespace troupe::transport {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t whole_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

constexpr std::size_t ring_begins = whole_pages(sizeof(ShmControl));
constexpr std::size_t regions_begin = ring_begins + ring_bytes;
/// Returns the size of a region: the bound's bytes plus padding between tensors.
std::size_t region_for(Bound bound) {
  return whole_pages(bound.bytes + most_tensors * payload_alignment);
}

// The seals without which a peer could shrink the segment while this process reads it.
constexpr int wanted_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

std::size_t ShmSegment::bytes_for(Bound bound) { return regions_begin + 3 * region_for(bound); }

bool ShmSegment::is_sane(const Descriptor& file, Bound bound) {
  struct stat about = {};
  return file && fstat(file.number(), &about) == 0 &&
         static_cast<std::size_t>(about.st_size) == bytes_for(bound) &&
         (fcntl(file.number(), F_GET_SEALS) & wanted_seals) == wanted_seals;
}

Result<std::shared_ptr<ShmSegment>> ShmSegment::make(Bound bound) {
  Descriptor file(memfd_create("troupe-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return system_error("cannot make a shared segment");
  if (ftruncate(file.number(), static_cast<off_t>(bytes_for(bound))) != 0)
    return system_error("cannot make a shared segment of " + std::to_string(bytes_for(bound)) +
                        " bytes");
  if (fcntl(file.number(), F_ADD_SEALS, wanted_seals) != 0)
    return system_error("cannot seal a shared segment");
  auto segment = open(file, bound);
  if (!segment) return segment;
  (*segment)->file_ = std::move(file);
  new ((*segment)->memory_) ShmControl;
  return segment;
}

Result<std::shared_ptr<ShmSegment>> ShmSegment::open(const Descriptor& file, Bound bound) {
  std::shared_ptr<ShmSegment> segment(new ShmSegment);
  const auto bytes = bytes_for(bound);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
  if (memory == MAP_FAILED) return system_error("cannot see a shared segment");
  // Advice only: the segment also works if the system gives it no huge pages.
  (void)madvise(memory, bytes, MADV_HUGEPAGE);
  segment->memory_ = static_cast<std::byte*>(memory);
  segment->bytes_ = bytes;
  segment->held_ = regions_begin;
  segment->passing_ = regions_begin + 2 * region_for(bound);
  return segment;
}

ShmSegment::~ShmSegment() {
  if (memory_) munmap(memory_, bytes_);
}

std::byte* ShmSegment::ring() { return memory_ + ring_begins; }

void ShmSegment::write_ring(std::uint64_t at, const void* from, std::size_t bytes) {
  if (bytes == 0) return;  // memcpy() requires valid pointers even for no bytes.
  const std::size_t begin = at % ring_bytes;
  const std::size_t first = std::min(bytes, ring_bytes - begin);
  std::memcpy(ring() + begin, from, first);
  std::memcpy(ring(), static_cast<const std::byte*>(from) + first, bytes - first);
}

void ShmSegment::read_ring(std::uint64_t at, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  const std::size_t begin = at % ring_bytes;
  const std::size_t first = std::min(bytes, ring_bytes - begin);
  std::memcpy(to, ring() + begin, first);
  std::memcpy(static_cast<std::byte*>(to) + first, ring(), bytes - first);
}

}  // namespace troupe::transport
