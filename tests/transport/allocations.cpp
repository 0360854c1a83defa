#include "transport/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

thread_local std::size_t asked_for = 0;
std::atomic<std::uint64_t> times{0};

void* allocate_or_null(std::size_t size) {
  asked_for += size;
  times.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size ? size : 1);
}

void* allocate(std::size_t size) {
  if (void* memory = allocate_or_null(size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// Replace the library's operators in the whole program.
void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate_or_null(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate_or_null(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

Allocations::Allocations() : before_(asked_for) {}
std::size_t Allocations::bytes() const { return asked_for - before_; }
std::uint64_t Allocations::of_process() { return times; }
