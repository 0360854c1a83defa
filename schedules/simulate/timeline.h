#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "schedules/schedule.h"
#include "schedules/simulate/simulate.h"

namespace troupe::schedules {

/// What of a device is busy.
enum class Track : std::uint8_t { compute, send, receive, reduce };

/// A device was busy with an action, or with the message that an action made.
struct Span {
  int device = 0;
  Track track = Track::compute;
  Action action;
  double start = 0;
  double end = 0;
};

/// What one action made went to another, on another device: the indices of their compute spans.
struct Message {
  std::size_t from = 0;
  std::size_t to = 0;
};

/// From this time on a device holds so many bytes of activations.
struct StashLevel {
  int device = 0;
  double time = 0;
  double bytes = 0;
};

/// What happened when, simulated or measured; times are seconds on one clock. Spans of one device
/// and track may overlap.
struct Timeline {
  std::string name;
  int devices = 0;
  std::vector<Span> spans;
  std::vector<Message> messages;
  std::vector<StashLevel> levels;
};

/// What the simulation says, with the schedule and the costs that it was made of.
Timeline timeline_of(const Schedule& schedule, const Costs& costs, const Simulation& simulation);

}  // namespace troupe::schedules
