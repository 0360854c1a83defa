#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace troupe::bench {

/// The speed of one kernel on one shape.
struct KernelFigure {
  std::string kernel;
  std::string shape;
  double seconds = 0;  // The median of the rounds.
  double rate = 0;     // Floating-point operations per second.
  double share = 0;    // The share of the measured peak of these threads and this precision.
};

/// A peer library's y = x w in fp32 with packed weights. `make` prepares a product to run.
struct OtherProduct {
  std::string name;
  std::function<std::function<void()>(std::int64_t rows, std::int64_t inputs, std::int64_t outputs)>
      make;  // Empty: there is no peer.
};

/// Measures the kernels that do most of the work, on `threads` threads. Each round runs all of
/// them, so that a slow moment of the machine affects all alike.
std::vector<KernelFigure> measure_kernels(int threads, int rounds, const OtherProduct& other = {});

/// Returns a table for people.
std::string to_table(const std::vector<KernelFigure>& figures);

}  // namespace troupe::bench
