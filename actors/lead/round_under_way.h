#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "actors/messages.h"

namespace troupe::actors {

/// A round in flight, and the reports of its devices.
struct RoundUnderWay {
  Play play;
  int played = 0;  // Devices that have finished.
  std::chrono::steady_clock::duration busy{};
  std::chrono::steady_clock::duration busiest{};  // The time of all passes of the busiest device.
  /// The longest time from a device's first action to its last one. No time spans two devices,
  /// whose clocks may differ.
  std::chrono::steady_clock::duration longest{};
  WorkTime of_first{};  // The same of the first device, on its clock.

  // Indexed by replica, then device.
  std::vector<bool> has_told;
  std::vector<std::shared_ptr<const std::vector<DeviceSpan>>> spans;
  std::vector<std::vector<int>> held_up;                       // As in RoundPlayed.
  std::vector<std::chrono::steady_clock::duration> computing;  // The time of all actions.

  explicit RoundUnderWay(Play given_out)
      : play(std::move(given_out)),
        has_told(static_cast<std::size_t>(devices())),
        spans(has_told.size()),
        held_up(has_told.size()),
        computing(has_told.size()) {}

  int devices() const { return play.round->devices() * play.round->replicas; }
  std::size_t place_of(const RoundPlayed& by_one) const {
    return static_cast<std::size_t>(by_one.replica * play.round->devices() + by_one.device);
  }
  bool is_through() const { return played == devices(); }

  void add(const RoundPlayed& by_one) {
    ++played;
    has_told.at(place_of(by_one)) = true;
    spans.at(place_of(by_one)) = by_one.spans;
    held_up.at(place_of(by_one)) = by_one.held_up;
    WorkTime whole{std::chrono::steady_clock::time_point::max(), {}};
    std::chrono::steady_clock::duration passes{};
    for (const auto& span : *by_one.spans) {
      busy += span.time.end - span.time.start;
      computing.at(place_of(by_one)) += span.time.end - span.time.start;
      if (schedules::has_micro_batch(span.action.kind)) passes += span.time.end - span.time.start;
      whole.start = std::min(whole.start, span.time.start);
      whole.end = std::max(whole.end, span.time.end);
    }
    busiest = std::max(busiest, passes);
    if (by_one.spans->empty()) return;
    longest = std::max(longest, whole.end - whole.start);
    if (place_of(by_one) == 0) of_first = whole;
  }
};

}  // namespace troupe::actors
