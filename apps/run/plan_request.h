#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/run/run_setup.h"
#include "apps/unit_times.h"
#include "config/run_config.h"
#include "models/train/unit_costs.h"
#include "schedules/plan/plan.h"

namespace troupe::apps {

/// Returns whether the schedule is asynchronous. If so, the cuts of its stages affect the run's
/// numbers.
bool is_asynchronous(const config::RunConfig& config);

/// Returns how many devices the configuration asks for. Unset stages count as one per replica,
/// unset replicas as one.
int devices_wanted(const config::RunConfig& config);

/// Returns the conditions under which the run's units have costs.
models::CostRequest cost_request(const config::RunConfig& config, const RunSetup& setup);

/// Returns the planning problem of a run. Times are those of a device with this profile, and add up
/// to those that were measured there, if `times` is not empty; bytes are those that this program
/// holds.
Result<schedules::PlanRequest> plan_request(const config::RunConfig& config, const RunSetup& setup,
                                            schedules::Cluster cluster,
                                            const schedules::DeviceProfile& profile,
                                            const std::vector<UnitTimes>& times = {});

/// Measures the units of a run by `measure`. `profile` tells how long that takes.
std::vector<UnitTimes> unit_times(
    const config::RunConfig& config, const RunSetup& setup, const schedules::DeviceProfile& profile,
    const std::function<std::vector<UnitTimes>(const MeasuredModel&)>& measure);

/// Whether this machine's memory bounds the plan, or the unknown memory of other machines does.
enum class MemoryOf { this_machine, elsewhere };

/// Returns the free memory of each GPU of this machine that the configuration uses; empty if it
/// computes on cores.
Result<std::vector<schedules::Bytes>> gpus_for(const config::RunConfig& config);

/// Returns the planning problem for nominal devices. Its cuts depend neither on the machine nor on
/// measurements.
Result<schedules::PlanRequest> nominal_request(const config::RunConfig& config,
                                               const RunSetup& setup, MemoryOf memory);

}  // namespace troupe::apps
