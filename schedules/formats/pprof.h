#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::schedules {

/// Amounts of several kinds, each with the stack of what it is part of: "device 0", "stage 0",
/// "block 3", "weights". Frames of the same name are the same thing, wherever they stand.
struct StackProfile {
  struct Measure {
    std::string what;  // "memory"
    std::string unit;  // "bytes", "nanoseconds" or "count".
  };

  struct Label {
    std::string key;
    std::string text;
  };

  struct Sample {
    std::vector<std::string> stack;     // From the outermost frame to the innermost; not empty.
    std::vector<std::int64_t> amounts;  // One for each measure.
    std::vector<Label> labels;
  };

  std::string name;               // Of what was measured.
  std::vector<Measure> measures;  // The first is what is shown unless another is asked for.
  std::vector<std::string> comments;
  std::chrono::nanoseconds duration{};  // Of what was measured; 0: nothing that takes time.
  std::vector<Sample> samples;
};

/// As `go tool pprof` and others read it: a message `Profile` of profile.proto, not compressed,
/// which readers take as well. Texts must be UTF-8.
std::string to_pprof(const StackProfile& profile);

}  // namespace troupe::schedules
