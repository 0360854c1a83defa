#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace troupe::actors {

/// Why a player is no more: of itself, or because a process was gone, which says nothing against
/// what it did.
enum class Cause : std::uint8_t { failed, lost };
constexpr std::array<std::string_view, 2> enum_names(Cause) { return {"failed", "lost"}; }

}  // namespace troupe::actors
