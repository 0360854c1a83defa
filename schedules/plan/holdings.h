#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/plan/plan.h"

namespace troupe::schedules {

/// The purpose of memory; a plan has a column for each.
enum class Held : std::uint8_t { weights, gradients, optimizer, activations, buffers };

constexpr std::array<Held, 5> all_held = {Held::weights, Held::gradients, Held::optimizer,
                                          Held::activations, Held::buffers};
std::string_view name_of(Held held);

/// The bytes that a device holds of one unit for one purpose.
struct Holding {
  int device = 0;  // Numbered over all replicas, as in a timeline.
  int stage = 0;
  std::string unit;  // Empty for memory of no unit, such as an optimizer's workspace.
  Held held = Held::weights;
  Bytes bytes = 0;

  friend bool operator==(const Holding&, const Holding&) = default;
};

/// The memory of a run's devices according to its plan.
struct RunMemory {
  std::string run;
  std::string plan;  // For example "1f1b, 2 stages, ...".
  int devices = 0;
  std::vector<Holding> holdings;  // Sorted by device, stage, unit and purpose; none are empty.
};

/// Computes the memory of a plan for its request. For each purpose, the units of a seat add up to
/// the seat's memory.
RunMemory run_memory(std::string run, const PlanRequest& request, const Plan& plan);

}  // namespace troupe::schedules
