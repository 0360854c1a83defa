#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::schedules {

/// A profile for pprof: amounts of several measures, each with a stack such as "device 0", "stage
/// 0", "block 3", "weights". Frames with equal names are one frame, at any depth.
struct StackProfile {
  struct Measure {
    std::string what;  // For example "memory".
    std::string unit;  // "bytes", "nanoseconds" or "count".
  };

  struct Label {
    std::string key;
    std::string text;
  };

  struct Sample {
    std::vector<std::string> stack;     // Outermost frame first; not empty.
    std::vector<std::int64_t> amounts;  // One for each measure.
    std::vector<Label> labels;
  };

  std::string name;               // The name of the measured run.
  std::vector<Measure> measures;  // Viewers show the first by default.
  std::vector<std::string> comments;
  std::chrono::nanoseconds duration{};  // The measured time span; 0 if there is none.
  std::vector<Sample> samples;
};

/// Serializes the profile for `go tool pprof` and compatible viewers: an uncompressed message
/// `Profile` of profile.proto. Texts must be UTF-8.
std::string to_pprof(const StackProfile& profile);

}  // namespace troupe::schedules
