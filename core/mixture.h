#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace troupe {

/// A recipe for mixing sources of samples: "a.bin 7, b.bin 2; from 2000: a.bin 1, b.bin 1". Of each
/// block of 7 + 2 samples, 7 are of a.bin. From step 2000 on blocks of two have one of each.
struct Mixture {
  struct Part {
    std::size_t source = 0;  // An index of `sources`.
    std::int64_t weight = 0;

    friend bool operator==(const Part&, const Part&) = default;
  };
  struct Phase {
    std::int64_t from = 0;  // The step that it begins with.
    std::vector<Part> parts;

    friend bool operator==(const Phase&, const Phase&) = default;
  };
  std::vector<std::string> sources;  // Each once, in the order in which they are named.
  std::vector<Phase> phases;         // The first one is from step 0 on.

  /// The error says which part of the text is wrong.
  static Result<Mixture> parse(std::string_view text);
  /// Returns a text that parses to an equal mixture.
  std::string text() const;

  /// Returns the phases that decide the samples of the first `steps` steps.
  Mixture until(std::int64_t steps) const;
  /// Returns this mixture with the phases of `wanted` from a step on, in place of all phases from
  /// there on. The first of them begins with that step. `wanted` may name a source by the end of
  /// its path. All sources stay, and none is added.
  Result<Mixture> changed_from(std::int64_t step, const Mixture& wanted) const;

  friend bool operator==(const Mixture&, const Mixture&) = default;
};

}  // namespace troupe
