#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace troupe::bench {

/// How fast one kernel is on one shape.
struct KernelFigure {
  std::string kernel;
  std::string shape;
  double seconds = 0;  // The median of the rounds.
  double rate = 0;     // Floating-point operations a second.
  double share = 0;    // Of the measured peak of the same threads and precision.
};

/// A peer's y = x w in fp32 with packed weights: made, then run.
struct OtherProduct {
  std::string name;
  std::function<std::function<void()>(std::int64_t rows, std::int64_t inputs, std::int64_t outputs)>
      make;  // Empty: there is no peer.
};

/// Measures the kernels that do most of the work on so many threads: round by round over all of
/// them, so that a slow moment of the machine meets all alike.
std::vector<KernelFigure> measure_kernels(int threads, int rounds, const OtherProduct& other = {});

/// As a table for people.
std::string to_table(const std::vector<KernelFigure>& figures);

}  // namespace troupe::bench
