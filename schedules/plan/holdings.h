#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/plan/plan.h"

namespace troupe::schedules {

/// What memory is held for: a plan has a column of each.
enum class Held : std::uint8_t { weights, gradients, optimizer, activations, buffers };

constexpr std::array<Held, 5> all_held = {Held::weights, Held::gradients, Held::optimizer,
                                          Held::activations, Held::buffers};
std::string_view name_of(Held held);

/// What a device holds of one unit, for one purpose.
struct Holding {
  int device = 0;  // Of all replicas one after another, as a timeline counts them.
  int stage = 0;
  std::string unit;  // Empty: of none, such as what an optimizer takes while no pass runs.
  Held held = Held::weights;
  Bytes bytes = 0;

  friend bool operator==(const Holding&, const Holding&) = default;
};

/// What a run says of its plan: which device holds what.
struct RunMemory {
  std::string run;
  std::string plan;  // "1f1b, 2 stages, ..."
  int devices = 0;
  std::vector<Holding> holdings;  // By device, stage, unit and purpose; none of no bytes.
};

/// Of a plan that was made for the request. What a device holds for a purpose and a stage adds up
/// to what the stage's seat has of it.
RunMemory run_memory(std::string run, const PlanRequest& request, const Plan& plan);

}  // namespace troupe::schedules
