#include "actors/executor.h"

#include <future>

#include "catch.h"
#include "core/memory/tensor.h"

using namespace troupe;
using namespace troupe::actors;

TEST_CASE("finish waits for all jobs and frees their memory", "[actors]") {
  ComputingThread first(1), second(1);
  // The second executor is slow and holds a tensor of the first.
  std::promise<void> may_end;
  first.post([&, ends = may_end.get_future().share()](Stream& stream) {
    const Tensor made = Tensor::make(stream.memory(), Shape{64}, DType::f32);
    second.post([made, ends](Stream&) { ends.wait(); });
  });
  CHECK(finish({&first}));
  CHECK(first.memory().counters().bytes_in_use > 0);
  const auto now = std::chrono::steady_clock::now();
  CHECK_FALSE(finish({&first, &second}, now));
  may_end.set_value();
  CHECK(finish({&first, &second}));
  CHECK(first.memory().counters().bytes_in_use == 0);
}
