#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/nodes/node_messages.h"
#include "apps/hosts/check.h"
#include "core/result.h"

/// Explanations of GPU readings for people.
namespace troupe::apps {

/// Returns names for NVML's bits that say why a GPU's clock is reduced: "power cap". An idle GPU is
/// not slowed down.
std::vector<std::string> what_slows(std::uint64_t reasons);

/// Returns serious trouble of a GPU: heat, a hardware slowdown, or no answer. For example "is
/// slowed by thermal slowdown"; empty if all is well.
std::string trouble_of(const actors::GpuReading& gpu);

/// Formats a reading: "NVIDIA H200, 97 % busy, 61.4 of 139.8 GiB, 655 W, 1755 MHz, 71 C; slowed by
/// power cap".
std::string to_text(const actors::GpuReading& gpu);

Check judge_gpu(const actors::GpuReading& gpu);
/// Judges a driver that cannot be asked. If the system knows no `gpus`, the driver is a leftover.
Check judge_gpu_driver(const Error& why, int gpus);
/// Judges the libraries that use tensor cores; an error in `libraries` names the missing one.
Check judge_gpu_libraries(const Result<std::string>& libraries, const Status& compiler, int gpus);

}  // namespace troupe::apps
