#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/memory/stream.h"
#include "core/memory/tensor.h"

namespace troupe::kernels {

/// A detour over the cores for an operation without a kernel on the device. It copies operands to
/// the host and results back to the device, and waits for each copy.
class OnCores {
 public:
  explicit OnCores(Stream& there) : there_(there), cores_(there.of_cores()) {}

  /// The stream on which the cores compute, with tensors from in(), out() and in_and_out().
  Stream& cores() { return cores_; }

  Tensor in(const Tensor& numbers) {
    Tensor here = there_.to_host(numbers);
    there_.wait();
    return here;
  }
  /// Returns null if `numbers` is null.
  const float* in(const float* numbers, std::int64_t count) {
    return numbers ? brought(numbers, count).f32() : nullptr;
  }
  /// Returns host memory for a result that take_back() copies to `numbers`.
  float* out(float* numbers, std::int64_t count) {
    Tensor here = cores_.make({count});
    results_.emplace_back(here, numbers);
    return here.f32();
  }
  Tensor out(Tensor& numbers) {
    Tensor here = cores_.make(numbers.shape());
    results_.emplace_back(here, numbers.f32());
    return here;
  }
  float* in_and_out(float* numbers, std::int64_t count) {
    Tensor here = brought(numbers, count);
    results_.emplace_back(here, numbers);
    return here.f32();
  }

  /// Copies the results to the device once the cores are done.
  void take_back() {
    for (const auto& [here, numbers] : std::exchange(results_, {})) {
      there_.device()->copy(here.raw(), here.place(), numbers, here.bytes());
      there_.wait();
    }
  }

 private:
  Tensor brought(const float* numbers, std::int64_t count) {
    Tensor here = cores_.make({count});
    there_.device()->copy(numbers, there_.place(), here.raw(), here.bytes());
    there_.wait();
    return operands_.emplace_back(std::move(here));
  }

  Stream& there_;
  Stream cores_;
  std::vector<Tensor> operands_;
  std::vector<std::pair<Tensor, float*>> results_;
};

}  // namespace troupe::kernels
