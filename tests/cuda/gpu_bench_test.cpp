// The benchmark of a GPT's kernels with a small GPT.

#include <cmath>

#include "bench/gpu_kernels.h"
#include "same.h"

namespace troupe::bench {
namespace {

TEST_CASE("each kernel of a GPT is measured and reported with its share") {
  const auto device = kernels::open_tensor_cores();
  if (!device) return;
  MemoryPool memory(kernels::device_memory());
  device->enter();
  Stream stream(memory, *device);
  const GptSize size{.micro = 2, .context = 16, .layers = 3, .width = 32, .heads = 2, .vocab = 48};
  const GpuEffort little{.rounds = 1, .square = 32, .copied = 1 << 16};
  const auto measured = measure_gpu_kernels(stream, size, kernels::Precision::bf16_gpu, little);
  REQUIRE(measured.ok());
  const auto& figures = *measured;
  CHECK(figures.peaks.operations > 0);
  CHECK(figures.peaks.bytes > 0);
  const auto table = to_table(size, figures);
  for (const auto& part : {figures.micro_batch, figures.step}) {
    REQUIRE_FALSE(part.empty());
    for (const auto& kernel : part) {
      INFO(kernel.kernel);
      CHECK(kernel.times > 0);
      CHECK((kernel.seconds > 0 && std::isfinite(kernel.seconds)));
      CHECK((kernel.floor > 0 && std::isfinite(kernel.floor)));
      CHECK(table.find("\n" + kernel.kernel + " ") != table.npos);
    }
  }
  // Feed-forward: two products forward and four backward; attention: two of its own.
  const auto count = [&](const std::string& kernel) {
    for (const auto& found : figures.micro_batch)
      if (found.kernel == kernel) return found.times;
    return std::int64_t{0};
  };
  CHECK(count("qkv") == 3);
  CHECK(count("up and gelu") == 3);
  CHECK(count("norm") == 4);  // The first norm of each layer, and the last norm.
  CHECK(count("residual and norm") == 3);
  CHECK(count("norm, weight gradient") == 7);
  CHECK(count("logits, weight gradient") == 1);

  auto uneven = size;
  uneven.heads = 5;
  const auto refused = measure_gpu_kernels(stream, uneven, kernels::Precision::bf16_gpu, little);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().text == "found 5 heads, wanted as many as divide 32, the width");
}

}  // namespace
}  // namespace troupe::bench
