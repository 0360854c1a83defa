#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <tuple>

#include "transport/wire/fields.h"

namespace troupe::actors {

/// The id of a player of a run. All processes of the run use the same ids.
struct PlayerId {
  enum class Kind : std::uint8_t { stage, optimizer, inputs, targets, supervisor, keeper };

  Kind kind = Kind::stage;
  int index = 0;  // The index in Cast; for a keeper, its process.

  static constexpr auto fields() {
    return std::tuple(transport::required("kind", &PlayerId::kind),
                      transport::required("index", &PlayerId::index).at_least(0));
  }
  friend auto operator<=>(const PlayerId&, const PlayerId&) = default;
};

constexpr std::array<std::string_view, 6> enum_names(PlayerId::Kind) {
  return {"stage", "optimizer", "inputs", "targets", "supervisor", "keeper"};
}

constexpr PlayerId the_supervisor{PlayerId::Kind::supervisor, 0};

}  // namespace troupe::actors
