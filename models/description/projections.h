#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/description/step_kind.h"
#include "models/layers/networks/gates.h"
#include "models/parameter.h"

namespace troupe::models {

/// The sizes of a product with a matrix.
struct Sizes {
  std::int64_t inputs, outputs;
};

/// Returns the parameter `name`.weight in the step's layout. Without init it begins as in PyTorch.
Parameter matrix(const StepOptions& options, const std::string& name, Sizes sizes,
                 const std::optional<Init>& init);
/// Returns the parameter `name`.bias. It begins at zero, or without init as in PyTorch.
Parameter bias(const std::string& name, Sizes sizes, const std::optional<Init>& init);

/// Adds a linear layer. `place` is that of the matrix.
void add_linear(const StepContext& context, const std::string& name, Sizes sizes, bool with_bias,
                const std::optional<Init>& init, Parameter::Place place = Parameter::Place::hidden);

/// The layout of a step's matrices.
StepOption layout_option();
/// The width of a projection, or the rows of a table.
StepOption size_option(std::string_view name, std::string_view help);
StepOption boolean_option(std::string_view name, std::string_view help, bool fallback);

/// Returns the activation of a gated network.
Gate gate_of(const StepOptions& options);

bool has_rows(const Flow& input);
/// Returns whether these are rows [length, width].
bool is_sequence(const Flow& input);

}  // namespace troupe::models
