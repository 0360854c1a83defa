#include <cuda_runtime.h>

#include <memory>

#include "same.h"

namespace troupe::kernels {
namespace {

class SeparateBlocks final : public MemorySource {
 public:
  void* allocate(std::size_t bytes) override {
    void* block = nullptr;
    return cudaMalloc(&block, bytes) == cudaSuccess ? block : nullptr;
  }
  void release(void* block, std::size_t) override { (void)cudaFree(block); }
  MemoryPlace place() const override { return {0}; }
};

}  // namespace

std::unique_ptr<MemorySource> separate_blocks() { return std::make_unique<SeparateBlocks>(); }

}  // namespace troupe::kernels
