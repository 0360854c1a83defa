#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/value.h"
#include "models/description/fault.h"
#include "models/description/option.h"

namespace troupe::models {

/// A name that stands for a kind of models with some of its options given: resnet50.
struct Preset {
  std::string name;
  Value options;  // A table.
};

/// Reads `preset`, whose tables may begin with another one: { like = "resnet50", base_width = 128
/// }. `options` are those of the description. Returns the first fault.
std::optional<Fault> read_presets(const Value& tree, std::span<const Option> options,
                                  std::vector<Preset>& into);

}  // namespace troupe::models
