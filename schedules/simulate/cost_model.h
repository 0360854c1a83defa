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

/// Returns the time for which the bytes occupy a link, without latency; it bounds the rate.
inline Seconds occupied(const Link& link, Bytes bytes) {
  return Seconds(static_cast<double>(bytes) / link.bandwidth);
}
/// Returns the time from sending the first byte to receiving the last.
inline Seconds hop(const Link& link, Bytes bytes) {
  return Seconds(link.time(static_cast<double>(bytes)));
}

/// The work of a kernel, independent of the device.
struct Work {
  double operations = 0;  // Floating-point operations.
  double bytes = 0;       // Read and written.
  int launches = 1;
};

/// The speed of a device for one kind of work.
struct Rate {
  double operations = 0;  // Per second.
  double bandwidth = 0;   // Bytes per second between the device and its memory.

  friend bool operator==(const Rate&, const Rate&) = default;
};

/// The speeds of a device, from a data sheet or from `troupe bench kernels --profile FILE`.
struct DeviceProfile {
  struct Kernel {
    std::string name;  // For example "linear_forward".
    Rate rate;
  };

  std::string name;
  Rate rate;           // For kernels that are not listed.
  Seconds overhead{};  // Per launch.
  Link link;           // To another device: seconds, and bytes per second.
  std::vector<Kernel> kernels;
};

/// Returns the larger of arithmetic and memory time at the kernel's rate, plus launch overhead.
Seconds time_of(const Work& work, std::string_view kernel, const DeviceProfile& device);

/// Parameters that several units share. The first unit that names them owns them and counts them
/// among its own bytes. A later unit on another device holds a copy per version and sends its
/// gradient to the owner.
struct TiedParameters {
  std::string name;
  Bytes weight = 0;
  Bytes gradient = 0;
};

/// The costs of one unit: the smallest piece of a model that a plan may move, such as a transformer
/// block (the embedding belongs to the first, the head to the last). Times are per micro-batch on a
/// device of speed 1.
struct UnitCost {
  std::string name;  // For example "block 3".

  Seconds forward{};
  Seconds backward{};        // Fused.
  Seconds backward_input{};  // The two halves.
  Seconds backward_weight{};
  Seconds update{};  // Once per step, from gradients to the next weights.

  std::int64_t parameters = 0;
  Bytes weight = 0;     // One version.
  Bytes gradient = 0;   // Summed over the micro-batches of a step.
  Bytes optimizer = 0;  // State kept between steps.
  /// Extra memory to make the next version. If no pass runs then, it reuses the memory of
  /// activations and of further gradient sums.
  Bytes update_room = 0;
  std::vector<TiedParameters> tied;

  Bytes stash = 0;         // Kept by a forward pass per micro-batch.
  Bytes stash_shared = 0;  // Kept in addition if the unit is first in its stage.
  Bytes stash_input = 0;   // Kept if the unit is first in a stage that recomputes.
  Bytes stash_weight = 0;  // The part of `stash` kept between the halves of the backward pass.
  Bytes stash_weight_shared = 0;  // The part of `stash_shared` kept there.
  Bytes workspace = 0;            // Used while a pass runs.
  Bytes boundary = 0;             // Received per micro-batch; a cut before this unit sends it.
  Bytes boundary_back = 0;        // Gradients that such a cut sends back.
};

/// Checks that all numbers are finite, not negative and plausible; errors name unit and number.
Status check_units(std::span<const UnitCost> units);

/// Convert a profile to the text of a profile file and back. read_profile() limits the size of its
/// input and reports the place of an error.
std::string to_json(const DeviceProfile& profile);
Result<DeviceProfile> read_profile(std::string_view json);

}  // namespace troupe::schedules
