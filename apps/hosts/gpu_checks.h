#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/nodes/node_messages.h"
#include "apps/hosts/check.h"
#include "core/result.h"

/// What the readings of GPUs say to a person.
namespace troupe::apps {

/// What NVML's bits say of why a GPU's clock is lower than it could be: "power cap". That there is
/// nothing to do slows nobody.
std::vector<std::string> what_slows(std::uint64_t reasons);

/// What of it is no everyday matter: heat, a hardware slowdown, a GPU that does not answer.
/// "is slowed by thermal slowdown"; empty where all is well.
std::string trouble_of(const actors::GpuReading& gpu);

/// "NVIDIA H200, 97 % busy, 61.4 of 139.8 GiB, 655 W, 1755 MHz, 71 C; slowed by power cap"
std::string to_text(const actors::GpuReading& gpu);

Check judge_gpu(const actors::GpuReading& gpu);
/// Of a driver that cannot be asked. `gpus` that the system knows: without any it is left over.
Check judge_gpu_driver(const Error& why, int gpus);
/// The libraries with which GPUs compute by their tensor cores, or which is missing.
Check judge_gpu_libraries(const Result<std::string>& libraries, int gpus);

}  // namespace troupe::apps
