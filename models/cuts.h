#pragma once

#include <cstdint>

namespace troupe::models {

/// The places where units end: behind each layer of the model and at the cuts of its description,
/// or also between the residuals of a layer, such as attention and feed-forward network. It changes
/// no result.
enum class Cuts : std::uint8_t { layers, sublayers };

}  // namespace troupe::models
