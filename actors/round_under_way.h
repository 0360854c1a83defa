#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

#include "actors/messages.h"

namespace troupe::actors {

/// A round that was given out, and what its devices have told of it.
struct RoundUnderWay {
  Play play;
  int played = 0;  // Devices that are through.
  std::chrono::steady_clock::duration busy{};
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::time_point::max();
  std::chrono::steady_clock::time_point end{};

  explicit RoundUnderWay(Play given_out) : play(std::move(given_out)) {}

  int devices() const { return play.round->devices() * play.round->replicas; }
  bool is_through() const { return played == devices(); }

  void add(const RoundPlayed& by_one) {
    ++played;
    for (const auto& span : *by_one.spans) {
      busy += span.time.end - span.time.start;
      begin = std::min(begin, span.time.start);
      end = std::max(end, span.time.end);
    }
  }
};

}  // namespace troupe::actors
