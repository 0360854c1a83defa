#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "schedules/schedule.h"
#include "schedules/simulate/simulate.h"

namespace troupe::schedules {

/// The resource of a device that is busy.
enum class Track : std::uint8_t { compute, send, receive, reduce };

/// A time during which a device is busy with an action or with its message.
struct Span {
  int device = 0;
  Track track = Track::compute;
  Action action;
  double start = 0;
  double end = 0;
};

/// A message between two devices, as the indices of the two compute spans.
struct Message {
  std::size_t from = 0;
  std::size_t to = 0;
};

/// The activations that a device holds from `time` on.
struct StashLevel {
  int device = 0;
  double time = 0;
  double bytes = 0;
};

/// A simulated or measured timeline; times are seconds on one clock. Spans of one device and track
/// may overlap.
struct Timeline {
  std::string name;
  int devices = 0;
  std::vector<Span> spans;
  std::vector<Message> messages;
  std::vector<StashLevel> levels;
};

/// Converts a simulation of this schedule with these costs into a timeline.
Timeline timeline_of(const Schedule& schedule, const Costs& costs, const Simulation& simulation);

}  // namespace troupe::schedules
