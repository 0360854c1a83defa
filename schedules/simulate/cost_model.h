#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "schedules/simulate/simulate_costs.h"

namespace troupe::schedules {

using Seconds = std::chrono::duration<double>;
using Bytes = std::int64_t;

/// How long a link is taken by so many bytes, its latency aside: what bounds the rate.
inline Seconds occupied(const Link& link, Bytes bytes) {
  return Seconds(static_cast<double>(bytes) / link.bandwidth);
}
/// From the first byte sent to the last one there.
inline Seconds hop(const Link& link, Bytes bytes) {
  return Seconds(link.time(static_cast<double>(bytes)));
}

/// What a kernel does, whatever the device.
struct Work {
  double operations = 0;  // Floating-point ones.
  double bytes = 0;       // Read and written.
  int launches = 1;
};

/// How fast a device gets on with one kind of work.
struct Rate {
  double operations = 0;  // Per second.
  double bandwidth = 0;   // Bytes per second between the device and its memory.

  friend bool operator==(const Rate&, const Rate&) = default;
};

/// What a device can do: from a data sheet, or measured by `troupe bench kernels --profile FILE`.
struct DeviceProfile {
  struct Kernel {
    std::string name;  // "linear_forward"
    Rate rate;
  };

  std::string name;
  Rate rate;           // For kernels that are not listed.
  Seconds overhead{};  // Of one launch.
  Link link;           // To another device; latency in seconds, bandwidth in bytes per second.
  std::vector<Kernel> kernels;
};

/// The larger of arithmetic and memory traffic at the kernel's rate, plus the launches.
Seconds time_of(const Work& work, std::string_view kernel, const DeviceProfile& device);

/// Parameters that several units share. The first unit that names them owns them and counts them
/// among its own bytes; a later one adds those of a version where the owner is on another device,
/// and gives the owner its gradient.
struct TiedParameters {
  std::string name;
  Bytes weight = 0;
  Bytes gradient = 0;
};

/// What one unit costs: the smallest piece of a model that a plan may move, such as a transformer
/// block (the embedding goes with the first, the head with the last). Times are those of a
/// micro-batch on the device that has speed 1.
struct UnitCost {
  std::string name;  // "block 3"

  Seconds forward{};
  Seconds backward{};        // Fused.
  Seconds backward_input{};  // Its two halves.
  Seconds backward_weight{};
  Seconds update{};  // Once a step: from gradients to the next weights.

  std::int64_t parameters = 0;
  Bytes weight = 0;     // One version.
  Bytes gradient = 0;   // Summed over the micro-batches of a step.
  Bytes optimizer = 0;  // What it remembers from step to step.
  /// What making the next version takes beyond all these. Where no pass runs meanwhile, it lies in
  /// the memory of activations and of further gradient sums.
  Bytes update_room = 0;
  std::optional<TiedParameters> tied;

  Bytes stash = 0;         // What a forward pass keeps of a micro-batch,
  Bytes stash_shared = 0;  // what it keeps beside that if the unit is first in a stage,
  Bytes stash_input = 0;   // what it keeps if the unit is first in a stage that recomputes,
  Bytes stash_weight = 0;  // and what is left of it between the halves of the backward pass.
  Bytes workspace = 0;     // While a pass runs.
  Bytes boundary = 0;      // What comes in with a micro-batch: a cut before this unit sends that.
};

/// Every number finite, none negative or absurd; names the unit and the number otherwise.
Status check_units(std::span<const UnitCost> units);

/// The text of a profile file and back; `read_profile` bounds what it reads and says where it is
/// wrong.
std::string to_json(const DeviceProfile& profile);
Result<DeviceProfile> read_profile(std::string_view json);

}  // namespace troupe::schedules
