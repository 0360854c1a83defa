#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "simulation/machine/wires.h"

/// For the sources of wires.h only.
namespace troupe::simulation {

/// A connection.
struct Cord {
  struct Packet {
    Parts parts;
    std::size_t bytes = 0;
    std::optional<Over> over;  // The end of the connection, instead of parts.
    bool may_repeat = false;
  };
  struct End {
    Wires::Party who;
    QueueId queue{};  // Everything that comes to this end.
    Plugged* owner = nullptr;
    bool is_open = false;
    bool is_silent = false;  // Closed by a machine without power: the other end was not told.
    std::string far_end;     // As this end sees it.
    Patience patience;
    std::size_t high_water = 4096;  // For packets that this end sends.

    std::deque<Packet> coming;
    std::size_t coming_bytes = 0;
    std::size_t stalled = 0;  // Packets whose time has come, but that could not arrive.
    Wires::Time last_due{};
    Wires::Time late_until{};  // Nothing comes before this time, which is long.
    Wires::Time last_heard{};
    std::optional<std::uint64_t> mute;  // Numbers the silence that goes on.

    std::deque<std::pair<Wires::Time, std::uint64_t>> numbers;  // As Plug::tell().
    std::uint64_t told = 0;
  };

  End& end(Side side) { return ends[static_cast<std::size_t>(side)]; }
  const End& end(Side side) const { return ends[static_cast<std::size_t>(side)]; }

  Wires* wires = nullptr;  // Null once they are gone.
  std::uint64_t number = 0;
  std::size_t path = 0;
  std::uint64_t place = 0;  // The place that was dialed.
  bool stays_here = false;
  bool is_broken = false;   // A fault has ended it. Nothing more is sent.
  bool may_repeat = false;  // Its packets may come again.
  // The same for all connections between two ends, so that packets may come again.
  std::string name;
  std::array<End, 2> ends;
};

constexpr Side other_side(Side side) {
  return side == Side::dialing ? Side::listening : Side::dialing;
}

}  // namespace troupe::simulation
