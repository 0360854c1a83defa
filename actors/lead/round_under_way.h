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
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::time_point::max();
  std::chrono::steady_clock::time_point end{};

  // Indexed by replica, then device.
  std::vector<bool> has_told;
  std::vector<std::shared_ptr<const std::vector<DeviceSpan>>> spans;
  std::vector<std::vector<int>> held_up;  // As in RoundPlayed.

  explicit RoundUnderWay(Play given_out)
      : play(std::move(given_out)),
        has_told(static_cast<std::size_t>(devices())),
        spans(has_told.size()),
        held_up(has_told.size()) {}

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
    for (const auto& span : *by_one.spans) {
      busy += span.time.end - span.time.start;
      begin = std::min(begin, span.time.start);
      end = std::max(end, span.time.end);
    }
  }
};

}  // namespace troupe::actors
