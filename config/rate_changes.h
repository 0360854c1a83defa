#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "models/learning_rate.h"

namespace troupe::config {

/// Parses "1e-3 from 120, 5e-4 from 200". Each change must be later than the previous one.
Result<std::vector<models::LearningRate::Change>> parse_rate_changes(std::string_view text);
std::string to_text(std::span<const models::LearningRate::Change> changes);

}  // namespace troupe::config
