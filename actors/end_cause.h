#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace troupe::actors {

/// Why a player ended: by its own failure, or because its process was lost, which is no evidence
/// against the player.
enum class EndCause : std::uint8_t { failed, lost };
constexpr std::array<std::string_view, 2> enum_names(EndCause) { return {"failed", "lost"}; }

}  // namespace troupe::actors
