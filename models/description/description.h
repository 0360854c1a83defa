#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/memory/dtype.h"
#include "core/number_bounds.h"
#include "models/description/fault.h"
#include "models/description/formula.h"
#include "models/description/hugging_face.h"
#include "models/description/option.h"
#include "models/description/preset.h"
#include "models/description/step_kind.h"

namespace troupe::models {

/// A formula, and where it stands.
struct PlacedFormula {
  Formula formula;
  Place place;
};

/// A name that a description defines.
struct NamedFormula {
  std::string name;
  PlacedFormula value;
};

/// A step as it is written, or a group of steps.
struct Step {
  const StepKind* kind = nullptr;  // Null: a group, { when = ..., do = [...] }.
  std::optional<PlacedFormula> when;
  std::optional<PlacedFormula> name;  // The name of its parameters.
  /// One for each option of the kind. Null: neither the step nor `every` gives it.
  std::vector<std::shared_ptr<const PlacedFormula>> options;
  std::vector<Step> steps;                  // The steps of a group or a residual.
  std::vector<Step> shortcut;               // The steps of a residual's shortcut.
  std::vector<std::vector<Step>> branches;  // The steps of a parallel's branches.
  Place place;
};

/// A part of a model, which may be repeated.
struct Part {
  std::optional<PlacedFormula> name{};
  std::vector<NamedFormula> repeat{};  // From the outer to the inner variable.
  std::vector<NamedFormula> let{};
  bool is_own_unit = false;
  std::vector<Step> body{};
  Place place{};
};

/// Two options of which the one must divide the other.
struct Divides {
  std::string small, large;
  std::optional<PlacedFormula> when;
};

struct Requirement {
  PlacedFormula holds;
  PlacedFormula why;
};

enum class LossKind : std::uint8_t { cross_entropy, binary, squared };

/// A description of a kind of models, with all formulas parsed. expand.h makes models of it.
struct Description {
  std::string name, help;
  std::vector<Option> options;
  std::vector<Preset> presets;
  std::vector<NamedFormula> let;
  std::vector<Divides> divides;
  std::vector<Requirement> require;
  /// A tensor that each sample has.
  struct Input {
    std::string name;
    bool has_integers = false;
    PlacedFormula shape;
    std::optional<PlacedFormula> below;  // For tokens. Integers without it are spans.
    std::optional<PlacedFormula> when;   // Null: it is always there, as the first one is.
    Place place;
  };
  std::vector<Input> inputs;  // In the order of declaration. The stream begins with the first.
  struct Loss {
    LossKind kind = LossKind::cross_entropy;
    Place place;
    std::optional<PlacedFormula> classes;  // Only cross_entropy has them.
    /// Null: not given. `model.loss` of a configuration overrides them.
    std::optional<PlacedFormula> ignore, smoothing, z;
  } loss;
  std::vector<Part> parts;
  std::vector<HuggingFace> hugging_face;
};

/// The bounds of descriptions, which may come from other machines.
namespace bounds {
constexpr std::size_t bytes = 256 << 10;  // As JSON.
constexpr int depth = 24;  // A message may be four levels deeper (transport/wire/wire.h).
constexpr std::size_t units = 4096;
constexpr std::size_t kept = 1024;  // Values that `keep` marks; all may cross one cut.
constexpr std::size_t inputs = 16;
constexpr std::int64_t steps = 65'536;  // After expansion.
constexpr std::size_t name = 256;
constexpr std::int64_t numbers = std::int64_t{1}
                                 << 48;  // The numbers of a parameter, or of a flow.
}  // namespace bounds

/// Returns the type of a loss's targets.
inline DType target_type_of(LossKind kind) {
  return kind == LossKind::cross_entropy ? DType::i32 : DType::f32;
}
/// Returns the bounds of a loss's targets in f32. A binary target is a probability.
inline NumberBounds target_bounds_of(LossKind kind) {
  return kind == LossKind::binary ? NumberBounds{.least = 0, .most = 1} : NumberBounds();
}

/// Reads the tree of a description. Checks all that does not depend on the values of options.
std::variant<Description, Fault> read_description(const Value& tree);

}  // namespace troupe::models
